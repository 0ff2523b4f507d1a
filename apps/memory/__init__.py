"""What a person told us once and the weights do not hold yet.

A preference said in words ("one short sentence", "call me Sam") helps from the next request on, long before
enough turns were judged to train on it. Entries belong to one person and one policy, are put into prompts
while the weights do not hold them (a turn records which ones), and leave the prompt once a version shows that
it no longer needs to be told.
"""
