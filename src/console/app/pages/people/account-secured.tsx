/** Says what ended when a person proved the address of an account that somebody else may have made. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { roleName } from "../../api/members.ts";
import { safePath } from "../../api/safe-path.ts";
import { me, titleOf } from "../../api/session.ts";
import { SinglePage } from "../../shell/single-page.tsx";
import { Notice } from "../../ui/notice.tsx";
import { COUNTS } from "./ended-credentials.ts";

export function AccountSecured() {
  const { data: person } = useSuspenseQuery(me);
  const query = new URLSearchParams(location.search);
  const countOf = (name: string): number => {
    const count = Number(query.get(name) ?? 0);
    return Number.isSafeInteger(count) && count > 0 ? count : 0;
  };
  return (
    <SinglePage title="Your account is yours alone now" person={person}>
      <Notice kind="warning">Somebody else may have used this account before you.</Notice>
      <p>
        An account for {person.email} existed before anybody had proved that this address is theirs.
        You have just proved it, so everything by which others could have used the account has
        ended.
      </p>
      <section className="card">
        <h2>What has ended</h2>
        <ul>
          {query.get("password") === "true" && <li>The password</li>}
          {COUNTS.map(([name, label]) => (
            <li key={name}>
              {label}: {countOf(name)}
            </li>
          ))}
        </ul>
        <p className="hint">If it was you who used it, make new tokens where you need them.</p>
      </section>
      <section className="card">
        <h2>What you belong to</h2>
        <ul>
          {person.organizations?.map((organization) => (
            <li key={organization.name}>
              <bdi>{titleOf(organization)}</bdi> ({roleName(organization.role)})
            </li>
          ))}
        </ul>
        <p className="hint">
          Leave those that you do not know (tessera member leave). What the account did is in the
          audit log of each: tell its admins if it was not you.
        </p>
      </section>
      <p>
        <a href={safePath(query.get("next"), location.origin)}>Continue</a>
      </p>
    </SinglePage>
  );
}
