// Questions to the server on this computer; the token of the address goes with each.
import { find } from "./dom.js";

const token = new URLSearchParams(location.search).get("token") ?? "";

export async function ask(name, content = {}) {
  let response;
  try {
    response = await fetch(`/api/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-fedwave-token": token },
      body: JSON.stringify(content),
    });
  } catch {
    throw new Error("The explorer does not answer: was it stopped? Start fedwave explore again.");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error ?? `The explorer answered with status ${response.status}.`);
  return answer;
}

export function showError(error) {
  const box = find("error");
  box.hidden = error === null;
  box.textContent = error === null ? "" : error.message;
}
