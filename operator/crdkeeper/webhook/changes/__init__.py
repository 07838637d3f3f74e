"""Answers to AdmissionReviews of CRDs: by a worker process, in time, and never in the way of conversions."""
