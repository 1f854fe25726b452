#!/bin/bash
# Counts the words of its input, a JSON object of one text on one line. Every line it prints is output that followers see at once.
set -eu
read -r input
echo "counting"
echo '@crosspoint {"progress": 50, "step": "Count"}'
words=$(printf '%s' "${input#*:}" | wc -w)
# The last line that is a JSON object is what the job gives back.
echo "{\"words\": $((words))}"
