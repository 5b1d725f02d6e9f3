"""The same sentences and the same encoder with skdice and with what people use instead."""
