/** What a page shows instead of itself: an error, or that there is no such page. */
import { type ErrorComponentProps, Link } from "@tanstack/react-router";
import { isNotFound, isTransient, messageOf } from "../api/errors.ts";
import { Button } from "./button.tsx";
import { Empty } from "./empty.tsx";

export function Failure({ error, reset }: ErrorComponentProps) {
  if (isNotFound(error)) {
    return <Missing>{messageOf(error)}</Missing>;
  }
  return (
    <Empty title={isTransient(error) ? "The server does not answer" : "That did not work"}>
      <p className="message">{messageOf(error)}</p>
      <Button onClick={reset}>Try again</Button>
    </Empty>
  );
}

export function Missing({ children = "It does not exist, or you may not see it." }) {
  return (
    <Empty title="There is no such page">
      <p className="message">{children}</p>
      <Link to="/" className="button">
        Go to the overview
      </Link>
    </Empty>
  );
}
