/** Chooses the organization whose pages are shown. */
import { useNavigate } from "@tanstack/react-router";
import { titleOf, useOrganization, usePerson } from "../api/session.ts";

export function OrganizationSelect() {
  const { person } = usePerson();
  const name = useOrganization();
  const navigate = useNavigate();
  const all = person.organizations ?? [];
  return (
    <label className="organization-select">
      <span className="hidden">Organization</span>
      <select
        value={name}
        onChange={(event) =>
          void navigate({ to: "/o/$organization", params: { organization: event.target.value } })
        }
      >
        {all.map((one) => (
          <option key={one.name} value={one.name}>
            {titleOf(one)}
          </option>
        ))}
        {!all.some((one) => one.name === name) && <option value={name}>{name}</option>}
      </select>
    </label>
  );
}
