"""The local analyst: topics, claims and groups by comparing and counting words, without a network
or a key."""
