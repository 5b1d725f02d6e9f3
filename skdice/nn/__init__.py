"""Networks, batches and the training loop; knows no estimator."""
