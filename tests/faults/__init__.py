"""What a migration must survive: each fault on the real API server, verified in etcd."""
