variable "project" {
  type        = string
  description = "The project of Google Cloud."
}

variable "region" {
  type    = string
  default = "us-central1"
}

variable "push_endpoints" {
  type        = map(string)
  default     = {}
  description = "Subscription => https address of its service, ending in /pubsub. Others are pulled."
}

variable "redis_memory_gb" {
  type    = number
  default = 1
}
