"""What a tenant told us once and the weights do not hold yet.

A preference said in words ("call me Sam", "one short sentence") helps from the next message on, long before enough
turns were judged to train on it. This room will hold such entries per end user, put them into prompts (a turn records
which ones), and retire each when a version of the policy shows that it no longer needs to be told.
"""
