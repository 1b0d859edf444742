# Buckets for reports and transcripts, and Redis as the store.

resource "google_storage_bucket" "bucket" {
  for_each                    = toset(["reports", "transcripts"])
  name                        = "${var.project}-${each.key}"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
}

# Standard tier: a replica takes over. Runs must survive a restart, and nothing may be evicted.
resource "google_redis_instance" "pipeline_locks" {
  name           = "pipeline-locks"
  tier           = "STANDARD_HA"
  memory_size_gb = var.redis_memory_gb
  region         = var.region
  redis_version  = "REDIS_7_0"

  redis_configs = {
    "maxmemory-policy" = "noeviction"
  }

  persistence_config {
    persistence_mode    = "RDB"
    rdb_snapshot_period = "ONE_HOUR"
  }
}

output "redis" {
  value       = "redis://${google_redis_instance.pipeline_locks.host}:${google_redis_instance.pipeline_locks.port}/0"
  description = "The setting `store`. Memorystore writes no append-only file: docs/howto/google-cloud.md says what that costs."
}
