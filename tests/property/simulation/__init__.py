"""A simulated cluster on which the real migration code runs, in virtual time and from one seed.

It says nothing about Kubernetes: what is known of the API server (see `tests/cluster`, which asks the real
one) is put in here as rules. What it finds out is whether the protocol holds under these rules whatever
happens in between: thousands of schedules that no real cluster would show in a week, each to be repeated.

* `etcd`: what is stored, and the judge of what is lost
* `apiserver`: one API server with its own, possibly stale, view of the CRD
* `operator`: processes that run the real `MigrationRun`, and that can be killed
* `plan`: what people and fate do, and when
* `world`: all of it together
"""
