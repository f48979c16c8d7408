/** What needs attention, a row for each concern: all of it leads to where it is seen. */
import { Link } from "@tanstack/react-router";
import { Status } from "../../ui/status.tsx";
import { Time } from "../../ui/time.tsx";
import type { Concern } from "./concerns.ts";

/** Concerns that are listed: their pages have the rest. */
const MAX_LISTED = 20;

export function Attention({ concerns }: { readonly concerns: readonly Concern[] }) {
  if (concerns.length === 0) {
    return <p className="secondary">Nothing: all deployments run well.</p>;
  }
  return (
    <>
      <ul className="rows">
        {concerns.slice(0, MAX_LISTED).map(({ keys, name, isBad, what, link, cause, at }) => (
          <li key={keys[0]} className="concern">
            <Status tone={isBad ? "bad" : "warning"}>{name}</Status>
            <Link {...link}>{what}</Link>
            {at !== undefined && <Time at={at} />}
            {cause !== "" && (
              <p className="secondary" title={cause}>
                {cause}
              </p>
            )}
          </li>
        ))}
      </ul>
      {concerns.length > MAX_LISTED && (
        <p className="secondary">And {concerns.length - MAX_LISTED} more.</p>
      )}
    </>
  );
}
