/** What a page shows instead of itself: an error, or that there is no such page. */
import { type ErrorComponentProps, Link } from "@tanstack/react-router";
import { isTransient, messageOf } from "../api/errors.ts";
import { Button } from "./button.tsx";
import { Empty } from "./empty.tsx";

export function Failure({ error, reset }: ErrorComponentProps) {
  return (
    <Empty title={isTransient(error) ? "The server does not answer" : "That did not work"}>
      <p className="message">{messageOf(error)}</p>
      <Button onClick={reset}>Try again</Button>
    </Empty>
  );
}

export function Missing() {
  return (
    <Empty title="There is no such page">
      <p>It does not exist, or you may not see it.</p>
      <Link to="/" className="button">
        Go to the overview
      </Link>
    </Empty>
  );
}
