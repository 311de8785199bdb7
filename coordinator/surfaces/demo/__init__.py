"""`coordinator demo`: real processes share one database file and index a folder of Python files.

plan     which jobs                      stage     what driver and processes say to each other
index    what a file defines             worker    claims, indexes, submits; also late, or without an answer
merged   all results as one index        reviewer  hears of results by a topic, reads them against the files
submissions  that topic                  review    what there is to say against a result
cast     the processes                   drive     who does what when
workspace  the finished log, read anew   checks    what must have held      report  in words and as JSON
"""
