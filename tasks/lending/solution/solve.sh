#!/bin/bash
# Harbor runs this as /solution/solve.sh; Called Shot lays solution/files over the repo itself.
cp -r /solution/files/. /app/
