/** The table of tokens, each with the menu of its actions. */
import type { TokenJson } from "../../../../../gen/tessera/v1/token_pb.js";
import { usePerson } from "../../api/session.ts";
import { deedsOf } from "../../api/token-access.ts";
import { callable, isOrganizations } from "../../api/tokens.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Status } from "../../ui/status.tsx";
import { DueTime, Time } from "../../ui/time.tsx";
import { dateText } from "../../ui/time-range.ts";

const DAY_MS = 86_400_000;

/** A token that ends this soon should be rotated, or let go. */
const MIN_LEFT_MS = 14 * DAY_MS;

/** One that nobody has used for so long after it was made is perhaps for nothing. */
const MAX_UNUSED_MS = 30 * DAY_MS;

export type Act = "edit" | "rotate" | "reveal" | "delete";

const NAMES: Readonly<Record<Act, string>> = {
  edit: "Edit",
  rotate: "Rotate",
  reveal: "Show the value",
  delete: "Delete",
};

interface TokenTableProps {
  readonly tokens: readonly TokenJson[];
  /** The person's e-mail address. */
  readonly me: string;
  onAct(act: Act, token: TokenJson): void;
}

export function TokenTable({ tokens, me, onAct }: TokenTableProps) {
  return (
    <DataTable
      label="Tokens"
      items={tokens}
      keyOf={({ tokenId = "" }) => tokenId}
      columns={[
        { name: "Name", cell: (token) => <Name token={token} /> },
        {
          ...{ name: "Kind", narrow: "beside" },
          cell: (token) => (
            <span className="badge">{isOrganizations(token) ? "organization" : "personal"}</span>
          ),
        },
        {
          name: "Access",
          narrow: "unnamed",
          grows: true,
          cell: (token) => <Access token={token} />,
        },
        { name: "Created", cell: (token) => <Created token={token} me={me} /> },
        {
          name: "Last used",
          cell: (token) => <LastUse token={token} />,
        },
        { name: "Expires", cell: (token) => <Expiry token={token} /> },
      ]}
      actions={(token) => <Actions token={token} onAct={onAct} />}
    />
  );
}

interface TokenProps {
  readonly token: TokenJson;
}

function Name({ token: { name, hint, description } }: TokenProps) {
  return (
    <>
      <span className="token-name">{name}</span>
      <code className="token-hint">{hint}…</code>
      {description && <span className="token-description">{description}</span>}
    </>
  );
}

/** When it was created, and by whom if not by the person who looks. */
function Created({ token, me }: TokenProps & { readonly me: string }) {
  const { createdAt, createdBy } = token;
  return (
    <>
      {createdAt !== undefined && <Time at={createdAt} />}
      {createdBy !== me && (
        <span className="secondary">
          by <bdi>{createdBy}</bdi>
        </span>
      )}
    </>
  );
}

function Access({ token }: TokenProps) {
  const called = callable(token);
  const deeds = deedsOf(token.access);
  return called === "" ? deeds : `${deeds}: ${called}`;
}

function LastUse({ token: { lastUsedAt, createdAt = "" } }: TokenProps) {
  if (lastUsedAt !== undefined) {
    return <Time at={lastUsedAt} />;
  }
  return Date.parse(createdAt) < Date.now() - MAX_UNUSED_MS ? (
    <Status tone="warning">never</Status>
  ) : (
    "never"
  );
}

function Expiry({ token: { expiresAt, previousValidUntil } }: TokenProps) {
  return (
    <>
      {expiresAt !== undefined &&
        (Date.parse(expiresAt) < Date.now() ? (
          <Status tone="bad">expired</Status>
        ) : (
          <>
            {Date.parse(expiresAt) < Date.now() + MIN_LEFT_MS ? (
              <Status tone="warning">{dateText(expiresAt)}</Status>
            ) : (
              dateText(expiresAt)
            )}
            <span className="secondary">
              <Time at={expiresAt} />
            </span>
          </>
        ))}
      {previousValidUntil !== undefined && (
        <span className="secondary">
          former value ends <DueTime at={previousValidUntil} />
        </span>
      )}
    </>
  );
}

function Actions({ token, onAct }: TokenProps & Pick<TokenTableProps, "onAct">) {
  const { isAdmin } = usePerson();
  const { tokenId = "", name = "", revealable } = token;
  if (isOrganizations(token) && !isAdmin) {
    return null;
  }
  const acts = (["edit", "rotate", "reveal", "delete"] as const).filter(
    (act) => act !== "reveal" || revealable,
  );
  return (
    <Menu
      id={`token-${tokenId}`}
      label={`Actions for ${name}`}
      items={acts.map((act) => ({
        label: NAMES[act],
        isDangerous: act === "delete",
        run: () => onAct(act, token),
      }))}
    />
  );
}
