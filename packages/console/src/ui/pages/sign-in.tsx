/** The sign-in page. Exchanges the token that `holdfast console` prints for an HttpOnly cookie. */
import type { JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { LoginBody, SessionAnswer } from "../../api.js";
import { post, RequestError, session } from "../requests.js";

/** Signs in with a token. @throws RequestError */
export async function signIn(body: LoginBody): Promise<void> {
  session.set(await post<SessionAnswer>("api/login", body));
}

/** The sign-in form. */
export function SignInPage({ trouble: before }: { readonly trouble?: string | undefined }): JSX.Element {
  const [token, setToken] = useState("");
  const [name, setName] = useState("");
  const [trouble, setTrouble] = useState(before);
  const [isAsking, setAsking] = useState(false);
  const tokenId = useId();
  const nameId = useId();
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);
  const send = async (): Promise<void> => {
    setAsking(true);
    setTrouble(undefined);
    try {
      await signIn({ token: token.trim(), ...(name.trim() === "" ? {} : { name: name.trim() }) });
    } catch (error) {
      setTrouble(error instanceof RequestError ? error.message : String(error));
      setToken("");
      first.current?.focus();
    } finally {
      setAsking(false);
    }
  };
  return (
    <main class="alone">
      <form
        class="card sign-in"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <h1>Holdfast console</h1>
        {trouble !== undefined && (
          <p class="problem" role="alert">
            {trouble}
          </p>
        )}
        <label for={tokenId}>Token</label>
        <input
          ref={first}
          id={tokenId}
          type="password"
          autocomplete="current-password"
          required
          value={token}
          onInput={({ currentTarget }) => setToken(currentTarget.value)}
        />
        <p class="hint">
          <code>holdfast console</code> prints an address that contains it, unless <code>--token</code> sets it.
        </p>
        <label for={nameId}>Your name</label>
        <input
          id={nameId}
          autocomplete="username"
          maxLength={64}
          value={name}
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
        <p class="hint">Optional. The audit log shows it with your actions.</p>
        <div class="buttons">
          <button type="submit" class="primary" disabled={isAsking || token.trim() === ""}>
            {isAsking ? "Signing in …" : "Sign in"}
          </button>
        </div>
      </form>
    </main>
  );
}
