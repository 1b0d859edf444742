"""`python -m holdfast.worker`: `holdfast worker`, for those who start workers so.

python -m holdfast.worker --project my-project --threads 5 --receive jobs=creative"""

import sys

from holdfast.cli.main import main

if __name__ == "__main__":
    main(["worker", *sys.argv[1:]])
