/** The account of a person: name, password, sessions, and the ways to their tokens. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { me, titleOf } from "../../api/session.ts";
import { SinglePage } from "../../shell/single-page.tsx";
import { ChangeName } from "./change-name.tsx";
import { ChangePassword } from "./change-password.tsx";
import { Sessions } from "./sessions.tsx";

export function Account() {
  const { data: person } = useSuspenseQuery(me);
  const { email, organizations = [] } = person;
  return (
    <SinglePage title="Your account" description={email} person={person} isWide>
      <section className="card">
        <h2>Your name</h2>
        <ChangeName person={person} />
      </section>
      <section className="card">
        <h2>Change your password</h2>
        <ChangePassword email={email ?? ""} />
      </section>
      <Sessions />
      <section className="card">
        <h2>My tokens</h2>
        {organizations.length === 0 ? (
          <p className="secondary">Tokens belong to an organization, and you are in none yet.</p>
        ) : (
          <ul>
            {organizations.map((organization) => (
              <li key={organization.name}>
                <Link
                  to="/o/$organization/tokens"
                  params={{ organization: organization.name ?? "" }}
                >
                  My tokens in {titleOf(organization)}
                </Link>
              </li>
            ))}
          </ul>
        )}
      </section>
    </SinglePage>
  );
}
