"""The bridge's requests and answers, as Scala and as a list for people, from `lakelog.spark.requests`."""
