"""A simulated cluster on which the real migration code runs, in virtual time and from one seed.

It proves nothing about Kubernetes: known facts about the API server (see `tests/cluster`, which uses the real
one) are its rules. It shows whether the protocol is correct under these rules whatever happens in between:
with thousands of reproducible schedules that no real cluster would show in a week.

* `etcd`: the stored data, and the detection of losses
* `apiserver`: one API server with its own, possibly stale, view of the CRD
* `operator`: processes that run the real `MigrationRun`, and that can be killed
* `plan`: what people and chance do, and when
* `world`: all of it together
"""
