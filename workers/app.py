"""The Celery application: which broker, which queues, what the clock starts.

`celery -A workers.app worker -Q judge`, `-Q ops`, `-Q train -c 1`, `celery -A workers.app beat`.
Messages only wake: what is to be done stands in Postgres, so a lost or repeated message costs time, not work.
"""

import logging
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")

from celery import Celery
from django.conf import settings

QUEUES = ("judge", "ops", "train")
VISIBILITY_S = 300  # a message that its worker has not finished by then is delivered again

app = Celery("attune")
app.conf.update(
    broker_url=settings.REDIS_URL,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={
        "visibility_timeout": VISIBILITY_S,
        "socket_connect_timeout": 5,
        "socket_timeout": 30,
        "socket_keepalive": True,
        "health_check_interval": 15,
    },
    result_backend=None,
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    enable_utc=True,
    timezone="UTC",
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    # threads: judging and publishing wait for others, training waits for its child;
    # SIGTERM is answered at once
    worker_pool="threads",
    worker_hijack_root_logger=False,
    worker_send_task_events=False,
    task_default_queue="ops",
    task_create_missing_queues=True,
    include=[
        "workers.alerts",
        "workers.drift",
        "workers.governance",
        "workers.judging",
        "workers.mails",
        "workers.samples",
        "workers.training",
        "workers.publishing",
        "workers.shadow",
        "workers.upkeep",
    ],
    beat_schedule_filename=str(settings.ATTUNE_HOME / "beat-schedule"),
    beat_max_loop_interval=5,
    beat_schedule={
        name: {
            "task": f"workers.upkeep.{name}",
            "schedule": every_s,
            "options": {"queue": "ops", "expires": every_s},
        }
        for name, every_s in {
            "expire_leases": 5.0,
            "fail_lost_turns": 5.0,
            "start_runs": 10.0,
            "reconcile_engines": 10.0,
            "find_lost_work": 15.0,
            "close_idle_sessions": 30.0,
            "forget_groundless": 60.0,
            "tell_again": 60.0,
            "sum_up_turns": 60.0,
            "read_weeks": 300.0,
            "begin_sweeps": 300.0,
            "collect_garbage": 600.0,
            "prune_outbox": 600.0,
            "prune_wishes": 3600.0,
        }.items()
    }
    | {
        "shadow": {
            "task": "workers.shadow.look",
            "schedule": 1.0,
            "options": {"queue": "ops", "expires": 1.0},
        }
    },
)

# one line for each message, clock ticks included, says nothing that the rows do not say better
for _name in ("celery.worker.strategy", "celery.app.trace", "celery.beat"):
    logging.getLogger(_name).setLevel(logging.WARNING)
