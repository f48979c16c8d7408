/** The sessions of a person: where they are signed in, and the buttons that end it. */
import {
  infiniteQueryOptions,
  useMutation,
  useQueryClient,
  useSuspenseInfiniteQuery,
} from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { SessionJson } from "../../../../../gen/tessera/v1/auth_pb.js";
import { auth } from "../../api/clients.ts";
import { CallError, messageOf } from "../../api/errors.ts";
import { PAGES } from "../../api/pages.ts";
import { Button, ShowMore } from "../../ui/button.tsx";
import { counted } from "../../ui/counted.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { Notice } from "../../ui/notice.tsx";
import { momentText, Time } from "../../ui/time.tsx";
import { dayText, secondText } from "../../ui/time-range.ts";
import { useToast } from "../../ui/toasts.tsx";
import { placeText } from "./place-text.ts";

export function Sessions() {
  const queryClient = useQueryClient();
  const toast = useToast();
  const list = useSuspenseInfiniteQuery(sessions);
  const all = list.data.pages
    .flatMap((page) => page.sessions ?? [])
    .sort((one, other) => lastUseMs(other) - lastUseMs(one));
  const ending = useMutation({
    mutationFn: () => auth.endOtherSessions({}),
    onSuccess: async ({ endedSessions = 0 }) => {
      await queryClient.invalidateQueries({ queryKey: ["sessions"] });
      toast(`Signed out of ${counted(endedSessions, "other session")}`);
    },
  });
  return (
    <section className="card">
      <header className="section-header">
        <h2>Sessions</h2>
        {(all.length > 1 || list.hasNextPage) && (
          <Button isBusy={ending.isPending} onClick={() => ending.mutate()}>
            Sign out all others
          </Button>
        )}
      </header>
      <p className="secondary">
        Where you are signed in. Sign out those that you do not know, and change your password.
      </p>
      {ending.error && <Notice kind="error">{messageOf(ending.error)}</Notice>}
      <DataTable
        label="Sessions"
        items={all}
        keyOf={({ sessionId = "" }) => sessionId}
        columns={[
          {
            ...{ name: "Browser or program", grows: true },
            cell: ({ client, current = false, address }) => (
              <>
                {client || UNKNOWN_PROGRAM}{" "}
                {current && <span className="badge accent">This session</span>}
                <span className="secondary">{placeOf(address)}</span>
              </>
            ),
          },
          { name: "Signed in", cell: (session) => <SignedIn session={session} /> },
          { name: "Last used", cell: lastUse },
        ]}
        actions={(session) => !session.current && <EndSession session={session} />}
      />
      <ShowMore of={list} />
    </section>
  );
}

const UNKNOWN_PROGRAM = "Unknown program";

const placeOf = (address: string | undefined): string =>
  address ? placeText(address, location.hostname) : "unknown address";

/** By the clock: this tells sessions of equal browsers apart. */
function SignedIn({ session: { createdAt, expiresAt } }: { readonly session: SessionJson }) {
  return (
    <>
      {createdAt !== undefined && (
        <time dateTime={createdAt} title={momentText(Date.parse(createdAt))}>
          {clockOf(createdAt)}
        </time>
      )}
      {expiresAt !== undefined && (
        <span className="secondary">
          ends <Time at={expiresAt} />
        </span>
      )}
    </>
  );
}

/** Such as `Nov 29, 14:03:22`: sessions last for days. */
function clockOf(at: string): string {
  const ms = Date.parse(at);
  return `${dayText(ms)}, ${secondText(ms)}`;
}

/** When a session was last used; that of the page is in use. */
const lastUseMs = ({ current = false, lastUsedAt, createdAt = "" }: SessionJson): number =>
  current ? Number.POSITIVE_INFINITY : Date.parse(lastUsedAt ?? createdAt);

function lastUse({ current = false, lastUsedAt }: SessionJson): ReactNode {
  if (current) {
    return "now";
  }
  return lastUsedAt === undefined ? "never" : <Time at={lastUsedAt} />;
}

function EndSession({ session }: { readonly session: SessionJson }) {
  const queryClient = useQueryClient();
  const toast = useToast();
  const { sessionId = "", client, createdAt = "" } = session;
  const name = client || UNKNOWN_PROGRAM;
  const ending = useMutation({
    mutationFn: () => auth.endSession({ sessionId }),
    onSettled: async (_answer, err) => {
      // One that has ended already is what was wanted.
      const isGone = err === null || (err instanceof CallError && err.status === 404);
      toast(isGone ? `Signed out ${name}` : messageOf(err));
      await queryClient.invalidateQueries({ queryKey: ["sessions"] });
    },
  });
  return (
    <Button
      kind="quiet"
      aria-label={`Sign out ${name}, signed in ${clockOf(createdAt)}`}
      isBusy={ending.isPending}
      onClick={() => ending.mutate()}
    >
      Sign out
    </Button>
  );
}

// Reads of the person's own sessions.

/** Sessions that are read at once; more come on demand. */
const MAX_SESSIONS_PER_PAGE = 50;

const sessions = infiniteQueryOptions({
  queryKey: ["sessions"],
  queryFn: ({ pageParam, signal }) =>
    auth.listSessions({ pageSize: MAX_SESSIONS_PER_PAGE, pageToken: pageParam }, { signal }),
  ...PAGES,
});
