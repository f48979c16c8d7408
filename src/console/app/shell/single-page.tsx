/** The frame of pages that belong to no organization: sign-in, account, logins of programs. */
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import type { PrincipalJson } from "../../../../gen/tessera/v1/auth_pb.js";
import { preferredOrganization, signOut } from "../api/session.ts";
import { Button } from "../ui/button.tsx";
import { Brand } from "./brand.tsx";

import "./single-page.css";

interface SinglePageProps {
  readonly title: string;
  readonly description?: ReactNode;
  /** Who is signed in; undefined for anyone. */
  readonly person?: PrincipalJson | undefined;
  /** Default: as wide as a form. */
  readonly width?: "wide" | "full";
  readonly children?: ReactNode;
}

export function SinglePage({ title, description, person, width, children }: SinglePageProps) {
  const organization = preferredOrganization(person?.organizations ?? []);
  useEffect(() => {
    document.title = `${title} · Tessera`;
  }, [title]);
  return (
    <>
      <header className="single-bar">
        <div className="single-home">
          <Brand />
          {organization !== undefined && (
            <Link to="/o/$organization" params={{ organization }}>
              <span aria-hidden="true">←</span> {organization}
            </Link>
          )}
        </div>
        {person !== undefined && (
          <nav aria-label="Account">
            <span className="person-email" title={person.email}>
              {person.email}
            </span>
            <Link to="/account">Account</Link>
            <Button kind="quiet" onClick={() => void signOut()}>
              Sign out
            </Button>
          </nav>
        )}
      </header>
      <main className={["single", width].filter(Boolean).join(" ")}>
        <header>
          <h1>{title}</h1>
          {description !== undefined && <p className="page-description">{description}</p>}
        </header>
        {children}
      </main>
    </>
  );
}
