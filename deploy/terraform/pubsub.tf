# Topics and subscriptions of the three systems, as `holdfast setup pubsub` checks them.

locals {
  topics = toset([
    "pipeline-jobs",
    "aiprod-pipeline-jobs", "aiprod-pipeline-results", "aiprod-pipeline-dlq",
    "work", "events", "holdfast-events", "dead-letters",
  ])

  subscriptions = {
    "pipeline-worker"             = { topic = "pipeline-jobs", ack = 600, filter = "" }
    "aiprod-pipeline-jobs-sub"    = { topic = "aiprod-pipeline-jobs", ack = 300, filter = "" }
    "aiprod-pipeline-results-sub" = { topic = "aiprod-pipeline-results", ack = 60, filter = "" }
    "aiprod-pipeline-dlq-sub"     = { topic = "aiprod-pipeline-dlq", ack = 60, filter = "" }
    "dead-letters-sub"            = { topic = "dead-letters", ack = 60, filter = "" }
    "metadata-worker"             = { topic = "work", ack = 600, filter = "NOT attributes:worker-type" }
    "transcription-worker"        = { topic = "work", ack = 600, filter = "attributes.worker-type = \"transcription\"" }
  }

  # They keep what could not be delivered or done, for people; a topic without a subscription keeps nothing.
  dead_letters = ["aiprod-pipeline-dlq-sub", "dead-letters-sub"]
}

resource "google_pubsub_topic" "topic" {
  for_each = local.topics
  name     = each.key
}

resource "google_pubsub_subscription" "subscription" {
  for_each                = local.subscriptions
  name                    = each.key
  topic                   = google_pubsub_topic.topic[each.value.topic].id
  ack_deadline_seconds    = each.value.ack
  filter                  = each.value.filter
  enable_message_ordering = true

  retry_policy {
    minimum_backoff = "10s"
    maximum_backoff = "600s"
  }

  dynamic "dead_letter_policy" {
    for_each = contains(local.dead_letters, each.key) ? [] : [1]
    content {
      dead_letter_topic     = google_pubsub_topic.topic["dead-letters"].id
      max_delivery_attempts = 5
    }
  }

  dynamic "push_config" {
    for_each = contains(keys(var.push_endpoints), each.key) ? [var.push_endpoints[each.key]] : []
    content {
      push_endpoint = push_config.value
      oidc_token {
        service_account_email = google_service_account.account["pubsub-push"].email
        audience              = push_config.value
      }
    }
  }
}

# Pub/Sub itself moves what can't be delivered: it needs to publish there and to acknowledge here.
data "google_project" "this" {}

locals {
  pubsub_agent = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-pubsub.iam.gserviceaccount.com"
}

resource "google_pubsub_topic_iam_member" "dead_letters" {
  topic  = google_pubsub_topic.topic["dead-letters"].id
  role   = "roles/pubsub.publisher"
  member = local.pubsub_agent
}

resource "google_pubsub_subscription_iam_member" "dead_letters" {
  for_each     = { for name, _ in local.subscriptions : name => name if !contains(local.dead_letters, name) }
  subscription = google_pubsub_subscription.subscription[each.key].id
  role         = "roles/pubsub.subscriber"
  member       = local.pubsub_agent
}
