"""The stock clients on both servers: the flows that `tests/e2e` runs on ours pass on LangGraph's server, too.

Two of `RemoteGraph` do not: a history before a config is a 500 there, and a turn that stops before its remote node
loses the input of the next one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient

from tests.e2e.test_event_streams import (
    test_a_failed_run_fails_the_output,
    test_a_models_answer_is_streamed_as_content_blocks,
    test_a_thread_stream_gives_the_output_of_its_run,
    transport,
)
from tests.e2e.test_javascript import run
from tests.e2e.test_remote_graph import (
    remote,
    test_a_question_inside_a_subgraph_is_found_in_its_state,
    test_a_question_is_raised_and_answered,
    test_an_error_of_the_graph_is_raised,
    test_every_stream_mode_arrives_under_its_name,
    test_goto_command_moves_an_idle_graph,
    test_invoke_makes_the_thread_and_returns_the_values,
    test_one_mode_streams_bare_data,
    test_outer_graph_continues_after_the_question_was_answered_elsewhere,
    test_parallel_questions_are_answered_by_id,
    test_question_of_a_remote_node_is_asked_by_the_outer_graph,
    test_remote_graph_is_drawn,
    test_remote_graph_works_as_a_node_of_another_graph,
    test_subgraph_events_carry_their_namespace,
    test_the_second_stream_format_works_too,
    test_the_state_of_a_fresh_thread_is_empty,
    test_update_creates_a_state_to_continue_from,
)

__all__ = [
    "remote",
    "test_a_failed_run_fails_the_output",
    "test_a_models_answer_is_streamed_as_content_blocks",
    "test_a_question_inside_a_subgraph_is_found_in_its_state",
    "test_a_question_is_raised_and_answered",
    "test_a_thread_stream_gives_the_output_of_its_run",
    "test_an_error_of_the_graph_is_raised",
    "test_every_stream_mode_arrives_under_its_name",
    "test_goto_command_moves_an_idle_graph",
    "test_invoke_makes_the_thread_and_returns_the_values",
    "test_one_mode_streams_bare_data",
    "test_outer_graph_continues_after_the_question_was_answered_elsewhere",
    "test_parallel_questions_are_answered_by_id",
    "test_question_of_a_remote_node_is_asked_by_the_outer_graph",
    "test_remote_graph_is_drawn",
    "test_remote_graph_works_as_a_node_of_another_graph",
    "test_subgraph_events_carry_their_namespace",
    "test_the_second_stream_format_works_too",
    "test_the_state_of_a_fresh_thread_is_empty",
    "test_update_creates_a_state_to_continue_from",
    "transport",
]


@pytest.fixture
async def client(addresses: list[str]) -> AsyncIterator[LangGraphClient]:
    """Of LangGraph's server: on ours these tests run in `tests/e2e`."""
    async with asyncio.timeout(300):
        made = get_client(url=addresses[0])
        yield made
        await made.aclose()


@pytest.fixture
def sync_client(addresses: list[str]) -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=addresses[0]) as made:
        yield made


@pytest.mark.promise("SERVE-01")
@pytest.mark.parametrize("name", ["react", "assistant_ui"])
async def test_javascript_chat_clients_work_alike(node: Path, addresses: list[str], tmp_path: Path, name: str) -> None:
    await asyncio.gather(*(asyncio.to_thread(run, node, address, tmp_path, "sdk-1.12", name) for address in addresses))
