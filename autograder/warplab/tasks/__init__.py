"""One module per problem set; importing it registers its tasks (warplab.task.get does so on demand)."""
