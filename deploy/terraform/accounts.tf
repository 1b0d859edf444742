# One identity for each service, with what it needs and nothing else.

locals {
  accounts = toset(["pipeline-worker", "worker-metadata", "worker-transcription", "pubsub-push"])

  consumes = {
    "pipeline-worker"      = ["pipeline-worker", "aiprod-pipeline-jobs-sub"]
    "worker-metadata"      = ["metadata-worker"]
    "worker-transcription" = ["transcription-worker"]
  }

  publishes = {
    "pipeline-worker"      = ["aiprod-pipeline-results", "aiprod-pipeline-dlq", "holdfast-events"]
    "worker-metadata"      = ["work", "events"]
    "worker-transcription" = ["events"]
  }

  reads = {
    "pipeline-worker"      = ["holdfast-store", "openai-api-key"]
    "worker-metadata"      = ["holdfast-store", "youtube-api-key"]
    "worker-transcription" = ["holdfast-store", "google-ai-api-key"]
  }

  read = merge([
    for account, names in local.reads : { for name in names : "${account}:${name}" => [account, name] }
  ]...)
  consumed = merge([
    for account, names in local.consumes : { for name in names : "${account}:${name}" => [account, name] }
  ]...)
  published = merge([
    for account, names in local.publishes : { for name in names : "${account}:${name}" => [account, name] }
  ]...)
}

resource "google_service_account" "account" {
  for_each   = local.accounts
  account_id = each.key
}

resource "google_pubsub_subscription_iam_member" "consumer" {
  for_each     = local.consumed
  subscription = google_pubsub_subscription.subscription[each.value[1]].id
  role         = "roles/pubsub.subscriber"
  member       = google_service_account.account[each.value[0]].member
}

resource "google_pubsub_topic_iam_member" "publisher" {
  for_each = local.published
  topic    = google_pubsub_topic.topic[each.value[1]].id
  role     = "roles/pubsub.publisher"
  member   = google_service_account.account[each.value[0]].member
}

# The store's URL and the keys of models: the values are added by hand, and each account reads its own.
resource "google_secret_manager_secret" "secret" {
  for_each  = toset(flatten(values(local.reads)))
  secret_id = each.key
  replication {
    auto {}
  }
}

resource "google_secret_manager_secret_iam_member" "reader" {
  for_each  = local.read
  secret_id = google_secret_manager_secret.secret[each.value[1]].id
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.account[each.value[0]].member
}

# Objects of one bucket: no rights on the bucket itself, none on others.
resource "google_storage_bucket_iam_member" "objects" {
  for_each = {
    "pipeline-worker"      = "reports"
    "worker-metadata"      = "transcripts"
    "worker-transcription" = "transcripts"
  }
  bucket = google_storage_bucket.bucket[each.value].name
  role   = "roles/storage.objectUser"
  member = google_service_account.account[each.key].member
}

# Documents of one database; the collection is a rule of the program, Firestore knows no smaller right for servers.
resource "google_project_iam_member" "documents" {
  project = var.project
  role    = "roles/datastore.user"
  member  = google_service_account.account["pipeline-worker"].member
  condition {
    title      = "the default database"
    expression = "resource.name == 'projects/${var.project}/databases/(default)'"
  }
}
