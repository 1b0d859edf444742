"""Everything in one Redis or Valkey server, shared by any number of processes on any number of
machines.

**Where things are.** `lua/` holds the native commands: a batch of them is one call of one static
script, applied in one piece and appended to the server's log in one piece. `lua/keys.lua` lists all
keys, `lua/run.lua` says how a run is packed. What is rare is decided by `model/machine` on facts
that are read before, and written by `lua/decisions.lua` if they have not changed.

**Clusters.** All keys of a store belong to one slot, so that everything stays atomic: a claim
touches a lane's queue and a run, a submission a key, a lane and a run. On a cluster the prefix has
to carry a hash tag (`?prefix={shop}:`; `open` says so); the store then lives on whichever node has
that slot. One slot is one processor: who needs more takes several prefixes, each a store of its
own, and gives each its tenants. Nothing is atomic across prefixes.

**What a lost server means.** Replication is asynchronous: a promoted replica may lack the last
commands, and so may a server restarted without `appendfsync always`. What survives is consistent,
and no epoch is given out twice (`lua/greet.lua`); work that was acknowledged and lost is done
again."""
