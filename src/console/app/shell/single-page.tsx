/** The frame of pages that belong to no organization: sign-in, account, logins of programs. */
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import type { PrincipalJson } from "../../../../gen/tessera/v1/auth_pb.js";
import { signOut } from "../api/session.ts";
import { Button } from "../ui/button.tsx";
import { Brand } from "./brand.tsx";

import "./single-page.css";

interface SinglePageProps {
  readonly title: string;
  readonly description?: ReactNode;
  /** Who is signed in; undefined for anyone. */
  readonly person?: PrincipalJson | undefined;
  readonly isWide?: boolean;
  readonly children?: ReactNode;
}

export function SinglePage({ title, description, person, isWide, children }: SinglePageProps) {
  useEffect(() => {
    document.title = `${title} · Tessera`;
  }, [title]);
  return (
    <>
      <header className="single-bar">
        <Brand />
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
      <main className={isWide ? "single wide" : "single"}>
        <header>
          <h1>{title}</h1>
          {description !== undefined && <p className="page-description">{description}</p>}
        </header>
        {children}
      </main>
    </>
  );
}
