"""Two versions, or two runs, of one policy side by side.

choice      which two the address names, and what to say where it does not name two
rows        a line of a table: a label, both values, whether they differ
learned     what runs were given: turns by source, their time, rewards and staleness
served      what versions answered: rewards with intervals, tokens, times
versions    the page of two versions
runs        the page of two runs
"""
