#!/bin/bash
# Harbor runs this as /tests/test.sh; Called Shot runs the hidden tests itself.
cp -r /tests/. /app/ && rm /app/test.sh && cd /app || exit 1
if python -m pytest -q -p no:cacheprovider -c /dev/null --rootdir /app $(cd /tests && find . -name 'test_*.py'); then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
