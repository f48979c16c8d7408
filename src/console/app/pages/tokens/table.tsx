/** The table of tokens. */
import type { TokenJson } from "../../../../../gen/tessera/v1/token_pb.js";
import { type Act, TokenRow } from "./row.tsx";

export interface TokenTableProps {
  readonly tokens: readonly TokenJson[];
  /** The person's e-mail address. */
  readonly me: string;
  onAct(act: Act, token: TokenJson): void;
}

export function TokenTable({ tokens, me, onAct }: TokenTableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className="table-box" aria-label="Tokens" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Kind</th>
            <th scope="col">Access</th>
            <th scope="col">Last used</th>
            <th scope="col">Expires</th>
            <th scope="col">
              <span className="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {tokens.map((token) => (
            <TokenRow key={token.tokenId} token={token} me={me} onAct={onAct} />
          ))}
        </tbody>
      </table>
    </section>
  );
}
