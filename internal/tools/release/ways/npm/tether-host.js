#!/usr/bin/env node
require('./run.js')('tether-host');
