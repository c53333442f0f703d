"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "machines",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(length=16), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("accelerators", sa.Text(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("ranks", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_machines")),
        sa.UniqueConstraint("digest", name=op.f("uq_machines_digest")),
    )
    op.create_table(
        "setups",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(length=16), nullable=False),
        sa.Column(
            "document", sa.Text(), nullable=False, comment="JSON: what differs from the defaults"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_setups")),
        sa.UniqueConstraint("digest", name=op.f("uq_setups_digest")),
    )
    op.create_table(
        "sheets",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(length=16), nullable=False),
        sa.Column("benchmark", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("backend", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("better", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sheets")),
        sa.UniqueConstraint("digest", name=op.f("uq_sheets_digest")),
    )
    op.create_index(op.f("ix_sheets_benchmark"), "sheets", ["benchmark"], unique=False)

    op.create_table(
        "states",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(length=16), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_states")),
        sa.UniqueConstraint("digest", name=op.f("uq_states_digest")),
    )
    op.create_table(
        "cells",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(length=16), nullable=False),
        sa.Column("sheet_id", sa.Integer(), nullable=False),
        sa.Column("row", sa.Text(), nullable=False),
        sa.Column("column", sa.Text(), nullable=False),
        sa.Column("transfers", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["sheet_id"], ["sheets.id"], name=op.f("fk_cells_sheet_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cells")),
        sa.UniqueConstraint("digest", name=op.f("uq_cells_digest")),
    )
    op.create_index(op.f("ix_cells_sheet_id"), "cells", ["sheet_id"], unique=False)

    op.create_table(
        "facts",
        sa.Column("state_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["state_id"], ["states.id"], name=op.f("fk_facts_state_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("state_id", "name", name=op.f("pk_facts")),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(length=16), nullable=False),
        sa.Column("content", sa.LargeBinary(length=16), nullable=False),
        sa.Column("uid", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("started", sa.BigInteger(), nullable=False, comment="microseconds since 1970"),
        sa.Column("finished", sa.BigInteger(), nullable=True, comment="null: interrupted"),
        sa.Column("machine_id", sa.Integer(), nullable=False),
        sa.Column("state_id", sa.Integer(), nullable=False),
        sa.Column("setup_id", sa.Integer(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("profiled", sa.Boolean(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("cells", sa.Integer(), nullable=False),
        sa.Column("passed", sa.Integer(), nullable=False),
        sa.Column("low", sa.Integer(), nullable=False),
        sa.Column("path", sa.Text(), nullable=True),
        sa.Column("command", sa.Text(), nullable=False, comment="JSON"),
        sa.Column("settings", sa.Text(), nullable=False, comment="JSON: all of them"),
        sa.ForeignKeyConstraint(["machine_id"], ["machines.id"], name=op.f("fk_runs_machine_id")),
        sa.ForeignKeyConstraint(["setup_id"], ["setups.id"], name=op.f("fk_runs_setup_id")),
        sa.ForeignKeyConstraint(["state_id"], ["states.id"], name=op.f("fk_runs_state_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("digest", name=op.f("uq_runs_digest")),
    )
    op.create_index(
        op.f("ix_runs_machine_id_setup_id_started"),
        "runs",
        ["machine_id", "setup_id", "started"],
        unique=False,
    )
    op.create_index(op.f("ix_runs_started"), "runs", ["started"], unique=False)

    op.create_table(
        "figures",
        sa.Column("cell_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("verdict", sa.SmallInteger(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("figure", sa.Double(), nullable=True),
        sa.Column("median", sa.Double(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("slow_p95", sa.Double(), nullable=True),
        sa.Column("slow_p99", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["cell_id"], ["cells.id"], name=op.f("fk_figures_cell_id")),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_figures_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("cell_id", "run_id", name=op.f("pk_figures")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_figures_run_id"), "figures", ["run_id"], unique=False)

    op.create_table(
        "results",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("sheet_id", sa.Integer(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_results_run_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["sheet_id"], ["sheets.id"], name=op.f("fk_results_sheet_id")),
        sa.PrimaryKeyConstraint("run_id", "number", name=op.f("pk_results")),
    )
    op.create_index(op.f("ix_results_sheet_id"), "results", ["sheet_id"], unique=False)
