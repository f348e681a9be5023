# Two stages: build with the development packages, run without them. glibc image: uWebSockets.js has no musl build.
FROM node:22-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci
COPY tsconfig.json build.mjs ./
COPY src ./src
RUN npm run build && npm prune --omit=dev

FROM node:22-bookworm-slim
# 127.0.0.1 would be the container's own. It starts with a key file (VOICEWIRE_KEYS_FILE, docs/access.md), or without keys with
# VOICEWIRE_INSECURE=true only. Then publish it on 127.0.0.1:
# docker run -e VOICEWIRE_INSECURE=true -p 127.0.0.1:8080:8080 voicewire
ENV NODE_ENV=production VOICEWIRE_HOST=0.0.0.0 VOICEWIRE_PORT=8080
WORKDIR /app
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json LICENSE NOTICE ./
USER node
EXPOSE 8080
# /metrics are on an operations port inside the container. To scrape from outside: VOICEWIRE_OPS_HOST=0.0.0.0, VOICEWIRE_OPS_PORT=9090.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "const e=process.env,s=e.VOICEWIRE_TLS_CERT?'https':'http';e.NODE_TLS_REJECT_UNAUTHORIZED='0';fetch(s+'://127.0.0.1:'+(e.VOICEWIRE_PORT||8080)+'/healthz').then(r=>process.exit(r.ok?0:1),()=>process.exit(1))"]
# One thread that collects garbage beside the event loop, as in dist/main.js.
ENTRYPOINT ["node", "--v8-pool-size=1", "dist/main.js"]
CMD ["serve"]
