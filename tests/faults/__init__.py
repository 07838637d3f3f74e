"""What a migration must survive: each fault on the real API server, and the truth read from etcd."""
