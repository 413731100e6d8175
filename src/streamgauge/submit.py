"""What spark-submit runs: `spark-submit … "$(streamgauge run --script)" job.py [arguments…]`."""

import sys

if __name__ == "__main__":
    sys.path.pop(0)  # this folder: its modules must not hide the job's
    if len(sys.argv) < 2:
        sys.exit("streamgauge: name the job: spark-submit … submit.py job.py [arguments…]")
    from streamgauge.job import run  # absolute: this file runs as a script

    run(sys.argv[1], sys.argv[2:])
