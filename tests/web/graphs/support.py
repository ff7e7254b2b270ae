"""Agents of a support desk, as people see them: with words before their calls, and results after them.

`support` asks about three calls at once (LangChain's own middleware); turned down with a note, it asks for another call
instead. `payments` has the gate before its tools, so that the results of its calls are observed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

from assent import ApprovalMiddleware


def refund_payment(order: int, amount: float, currency: str, reason: str) -> str:
    """Pays money back."""
    if amount > 1000:
        raise ValueError("the bank refused the refund: over the limit")
    return f"refunded {amount} {currency} to order {order}"


def send_email(to: str, subject: str, body: str) -> str:
    """Sends a mail."""
    return f"sent to {to}"


def delete_folder(path: str) -> str:
    """Deletes a folder."""
    return f"deleted {path}"


def issue_voucher(order: int, amount: float, currency: str) -> str:
    """Gives a voucher instead of money."""
    return f"voucher of {amount} {currency}"


def set_limit(service: str, field: str, before: int, after: int) -> str:
    """Changes a setting."""
    return f"{service}.{field} is {after}"


TOOLS: list[Any] = [refund_payment, send_email, delete_folder, issue_voucher, set_limit]


class Clerk(BaseChatModel):
    """Deterministic: what it does depends on the messages alone."""

    @property
    def _llm_type(self) -> str:
        return "clerk"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind()

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_reply(messages))])


def _reply(messages: list[BaseMessage]) -> AIMessage:
    asked = max(place for place, message in enumerate(messages) if isinstance(message, HumanMessage))
    since = messages[asked + 1 :]
    results = [message for message in since if isinstance(message, ToolMessage)]
    wish = messages[asked].text
    if any("voucher" in result.text for result in results) and not any("issue" in str(m.content) for m in since[-1:]):
        made = [call["name"] for message in since if isinstance(message, AIMessage) for call in message.tool_calls]
        if "issue_voucher" not in made:
            return _call("Then I offer a voucher.", issue_voucher={"order": 4711, "amount": 249.9, "currency": "EUR"})
    if results:
        return AIMessage("Done: " + "; ".join(result.text for result in results))
    if "limit" in wish:
        change = {"service": "checkout", "field": "per_minute", "before": 600, "after": 1200}
        return _call("The queue is full twice a day. I raise the limit.", set_limit=change)
    amount = 12_480.5 if "too much" in wish else 249.9
    refund = {
        "order": 4711,
        "amount": amount,
        "currency": "EUR",
        "reason": "Item arrived broken; customer sent photos.",
    }
    if "only" in wish:
        return _call("Policy allows a refund within 30 days.", refund_payment=refund)
    mail = {
        "to": "customer@example.com",
        "subject": "Your refund for order 4711",
        "body": "Hello, we are sorry about the broken lamp. We refunded EUR 249.90 to your card.",
    }
    words = "Policy allows a refund within 30 days. I will refund, write back and remove the upload."
    return _call(words, refund_payment=refund, send_email=mail, delete_folder={"path": "/srv/tmp/refunds/4711"})


def _call(words: str, **calls: dict[str, Any]) -> AIMessage:
    made = [{"name": name, "args": args, "id": f"call_{name}", "type": "tool_call"} for name, args in calls.items()]
    return AIMessage(words, tool_calls=made)


support = create_agent(Clerk(), TOOLS, middleware=[HumanInTheLoopMiddleware({tool.__name__: True for tool in TOOLS})])
payments = create_agent(Clerk(), TOOLS, middleware=[ApprovalMiddleware()])
