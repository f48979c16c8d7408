/** For people who are in no organization yet. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { me } from "../api/session.ts";
import { Command } from "../ui/command.tsx";
import { SinglePage } from "./single-page.tsx";

export function NoOrganization() {
  const { data: person } = useSuspenseQuery(me);
  return (
    <SinglePage
      title="You are in no organization yet"
      description={`An admin of one can invite ${person.email}. The operator of the platform can create one:`}
      person={person}
      width="wide"
    >
      <Command
        text={`npx tessera-platform admin create-organization NAME --admin ${person.email}`}
      />
    </SinglePage>
  );
}
