"""Durable execution: claims runs, executes their steps, keeps their leases, settles their
outcomes."""
