/** What a member who is no admin sees in the place of a page for admins. */
import { Link } from "@tanstack/react-router";
import { useOrganization } from "../api/session.ts";
import { Empty } from "./empty.tsx";

export function AdminsOnly() {
  const organization = useOrganization();
  return (
    <Empty inPage title="This is for admins">
      <p>Ask an admin of the organization for what you need from here.</p>
      <Link to="/o/$organization/members" params={{ organization }} className="button">
        See who they are
      </Link>
    </Empty>
  );
}
