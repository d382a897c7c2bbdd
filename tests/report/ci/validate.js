// Says what is wrong with files, by the schema of SARIF 2.1.0: validate.js MODULES FILE...
'use strict';
const fs = require('fs');
const [modules, ...names] = process.argv.slice(2);
const Ajv = require(`${modules}/ajv/dist/2020`);
const ajv = new Ajv({strict: false, allErrors: true});
require(`${modules}/ajv-formats`)(ajv);
const read = name => JSON.parse(fs.readFileSync(name));
const check = ajv.compile(read(`${modules}/@microsoft/sarif-multitool-linux/sarif-2.1.0.json`));
for (const name of names)
    if (!check(read(name)))
        for (const error of check.errors)
            console.log(`${name}: ${error.instancePath} ${error.message}`);
