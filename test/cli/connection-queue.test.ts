import { connect, type Socket } from "node:net";
import { expect, test, vi } from "vitest";
import { PATIENT, serve } from "./program.ts";

vi.setConfig(PATIENT);

/** The server library's own queue is 512. */
const CONNECTIONS = 1500;

// A connection that finds the queue full is not refused: its first packet is dropped, and sent again after 1, 3 and 7 s.
test.skipIf(process.platform !== "linux")(
  "1,500 connections are taken while the gateway stands still",
  async () => {
    const { program, url } = await serve();
    await using _ = program;
    const port = Number(new URL(url).port);
    const sockets: Socket[] = [];
    program.child.kill("SIGSTOP");
    try {
      for (let count = 0; count < CONNECTIONS; count += 1) sockets.push(connect(port, "127.0.0.1"));
      const isConnected = (socket: Socket): boolean => socket.readyState === "open";
      await vi.waitFor(() => expect(sockets.filter(isConnected)).toHaveLength(CONNECTIONS), 10_000);
    } finally {
      for (const socket of sockets) socket.destroy();
      program.child.kill("SIGCONT");
    }
    expect((await fetch(`${url}/`)).status).toBe(200);
  },
);
