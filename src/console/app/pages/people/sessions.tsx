/** The sessions of a person: where they are signed in, and the buttons that end it. */
import { useMutation, useQueryClient, useSuspenseInfiniteQuery } from "@tanstack/react-query";
import type { SessionJson } from "../../../../../gen/tessera/v1/auth_pb.js";
import { auth } from "../../api/clients.ts";
import { CallError, messageOf } from "../../api/errors.ts";
import { signOut } from "../../api/session.ts";
import { sessions } from "../../api/sessions.ts";
import { Button } from "../../ui/button.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toasts.tsx";

export function Sessions() {
  const queryClient = useQueryClient();
  const toast = useToast();
  const { data, hasNextPage, fetchNextPage, isFetchingNextPage } =
    useSuspenseInfiniteQuery(sessions);
  const all = data.pages.flatMap((page) => page.sessions ?? []);
  const ending = useMutation({
    mutationFn: () => auth.endOtherSessions({}),
    onSuccess: async ({ endedSessions = 0 }) => {
      await queryClient.invalidateQueries({ queryKey: ["sessions"] });
      toast(`Other sessions that ended: ${endedSessions}`);
    },
  });
  return (
    <section className="card">
      <header className="page-header">
        <h2>Sessions</h2>
        {(all.length > 1 || hasNextPage) && (
          <Button kind="danger" isBusy={ending.isPending} onClick={() => ending.mutate()}>
            End all others
          </Button>
        )}
      </header>
      <p className="secondary">
        Where you are signed in. End those that you do not know, and change your password.
      </p>
      {ending.error && <Notice kind="error">{messageOf(ending.error)}</Notice>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways, also by keyboard */}
      <section className="table-box" aria-label="Sessions" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Browser or program</th>
              <th scope="col">Signed in</th>
              <th scope="col">Last used</th>
              <th scope="col">Ends</th>
              <th scope="col">
                <span className="hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {all.map((session) => (
              <SessionRow key={session.sessionId} session={session} />
            ))}
          </tbody>
        </table>
      </section>
      {hasNextPage && (
        <Button isBusy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Show more
        </Button>
      )}
    </section>
  );
}

function SessionRow({ session }: { readonly session: SessionJson }) {
  const queryClient = useQueryClient();
  const toast = useToast();
  const { sessionId = "", current = false, client, address, ...times } = session;
  const { createdAt, lastUsedAt, expiresAt } = times;
  const name = client || "Unknown program";
  const ending = useMutation({
    mutationFn: () => auth.endSession({ sessionId }),
    onSettled: async (_answer, err) => {
      // One that has ended already is what was wanted.
      const isGone = err === null || (err instanceof CallError && err.status === 404);
      toast(isGone ? `Ended the session of ${name}` : messageOf(err));
      await queryClient.invalidateQueries({ queryKey: ["sessions"] });
    },
  });
  return (
    <tr>
      <th scope="row">
        {name}
        <span className="secondary">{address || "unknown address"}</span>
      </th>
      <td>{createdAt !== undefined && <Time at={createdAt} />}</td>
      <td>
        {current && "this session"}
        {!current && (lastUsedAt === undefined ? "never" : <Time at={lastUsedAt} />)}
      </td>
      <td>{expiresAt !== undefined && <Time at={expiresAt} />}</td>
      <td className="actions">
        {current ? (
          <Button kind="quiet" onClick={() => void signOut()}>
            Sign out
          </Button>
        ) : (
          <Button
            kind="quiet"
            aria-label={`End the session of ${name}, ${address || "unknown address"}`}
            isBusy={ending.isPending}
            onClick={() => ending.mutate()}
          >
            End
          </Button>
        )}
      </td>
    </tr>
  );
}
