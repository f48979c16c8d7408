/** What a page shows instead of itself: an error, or that there is no such page. */
import { useQueryErrorResetBoundary } from "@tanstack/react-query";
import { type ErrorComponentProps, Link, useRouter } from "@tanstack/react-router";
import { useEffect } from "react";
import { CallError, isMissing, isTransient, messageOf } from "../api/errors.ts";
import { isReachable, NotLoaded } from "../api/loaded.ts";
import { Button } from "./button.tsx";
import { Empty } from "./empty.tsx";

/** How often a page that the server did not answer asks again by itself. */
const RETRY_INTERVAL_MS = 3_000;

export function Failure({ error }: ErrorComponentProps) {
  const router = useRouter();
  const { reset } = useQueryErrorResetBoundary();
  const mayPass = isTransient(error);
  const retry = async (): Promise<void> => {
    if (error instanceof CallError && !(error instanceof NotLoaded)) {
      reset();
      await router.invalidate();
    } else if (await isReachable()) {
      location.reload();
    }
  };
  useEffect(() => {
    const timer = mayPass ? setInterval(() => void retry(), RETRY_INTERVAL_MS) : undefined;
    return () => clearInterval(timer);
  });
  return isMissing(error) ? (
    <Empty title="It is not here">
      <p className="message">{messageOf(error)}</p>
      <Overview />
    </Empty>
  ) : (
    <Empty title={mayPass ? "The server does not answer" : "That did not work"}>
      <p className="message">{messageOf(error)}</p>
      <Button onClick={() => void retry()}>Try again</Button>
    </Empty>
  );
}

export function Missing() {
  return (
    <Empty title="There is no such page">
      <p>It does not exist, or you may not see it.</p>
      <Overview />
    </Empty>
  );
}

function Overview() {
  return (
    <Link to="/" className="button">
      Go to the overview
    </Link>
  );
}
