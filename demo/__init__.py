"""`make demo`: a migration from beginning to end on a real API server, in the words of those who run one."""
