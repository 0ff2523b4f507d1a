"""Which version goes live: held-out questions decide, and the teacher itself is the yardstick.

    yardstick   what the base writes to the choosing questions with the wishes in the prompt, and without: made once
                a lesson, and waited for
    wanted      whether what a version was taught is still what is wanted
    measure     what a version writes without, how often that passes, and whether anything else was lost
    giving way  how long measuring waits for people, and that it comes to its end
    decide      better than the best so far and nothing lost: it goes live; else the best stays
    best        which that is once the pointer was moved: what its lineage left behind is no best any more
    gate        a version's rows: its gate result, its step in the lesson's course
    retiring    what leaves the prompt since the weights do it, and what comes back

A reply passes where the base finds it likelier, token for token, once it is told of the wishes, by at least
half of what tells its own told replies from its own untold ones. No rule and no score of any benchmark has a
part in it.
"""
