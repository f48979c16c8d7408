/** One token in the table, with the menu of its actions. */
import type { TokenJson } from "../../../../../gen/tessera/v1/token_pb.js";
import { usePerson } from "../../api/session.ts";
import { accessNames, callable, isOrganizations } from "../../api/tokens.ts";
import { Menu } from "../../ui/menu.tsx";
import { Status } from "../../ui/status.tsx";
import { Time } from "../../ui/time.tsx";

export type Act = "edit" | "rotate" | "reveal" | "delete";

const NAMES: Readonly<Record<Act, string>> = {
  edit: "Edit",
  rotate: "Rotate",
  reveal: "Show the value",
  delete: "Delete",
};

export interface TokenRowProps {
  readonly token: TokenJson;
  readonly me: string;
  onAct(act: Act, token: TokenJson): void;
}

export function TokenRow({ token, me, onAct }: TokenRowProps) {
  const { isAdmin } = usePerson();
  const { tokenId = "", name = "", description, hint, createdBy, lastUsedAt, expiresAt } = token;
  const mayChange = !isOrganizations(token) || isAdmin;
  const acts = (["edit", "rotate", "reveal", "delete"] as const).filter(
    (act) => act !== "reveal" || token.revealable,
  );
  const called = callable(token);
  return (
    <tr>
      <th scope="row">
        <span className="token-name">{name}</span>
        <code className="token-hint">{hint}…</code>
        {description && <span className="token-description">{description}</span>}
      </th>
      <td>
        {isOrganizations(token) ? "organization" : "personal"}
        {createdBy !== me && <span className="secondary">by {createdBy}</span>}
      </td>
      <td>
        {accessNames(token)}
        {called !== "" && <span className="secondary">{called}</span>}
      </td>
      <td>{lastUsedAt === undefined ? "never" : <Time at={lastUsedAt} />}</td>
      <td>
        {expiresAt !== undefined && <Expiry at={expiresAt} />}
        {token.previousValidUntil !== undefined && (
          <span className="secondary">
            former value ends <Time at={token.previousValidUntil} />
          </span>
        )}
      </td>
      <td className="actions">
        {mayChange && (
          <Menu
            id={`token-${tokenId}`}
            label={`Actions for ${name}`}
            items={acts.map((act) => ({
              label: NAMES[act],
              isDangerous: act === "delete",
              run: () => onAct(act, token),
            }))}
          />
        )}
      </td>
    </tr>
  );
}

function Expiry({ at }: { readonly at: string }) {
  return Date.parse(at) < Date.now() ? <Status tone="bad">expired</Status> : <Time at={at} />;
}
