BEGIN TRANSACTION;
CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY NOT NULL);
INSERT INTO "alembic_version" VALUES('0003');
CREATE TABLE answers (
	tenant_id VARCHAR NOT NULL, 
	run_id VARCHAR NOT NULL, 
	interrupt_id VARCHAR NOT NULL, 
	thread_id VARCHAR NOT NULL, 
	actor VARCHAR NOT NULL, 
	value JSON, 
	standing BOOLEAN NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_answers PRIMARY KEY (tenant_id, run_id, interrupt_id), 
	CONSTRAINT fk_answers_tenant_id_thread_id FOREIGN KEY(tenant_id, thread_id) REFERENCES threads (tenant_id, thread_id) ON DELETE CASCADE
);
INSERT INTO "answers" VALUES('default','01a1eca5-9cfd-756c-ac15-dcf51924a968','98af0fd28568c0daf2e08c4ce611e445','00000000-0000-4000-8000-000000000001','reviewer:01a1eca5-868a-7108-9e30-08c6d392f7ed','{"type":"approve"}',1,1794971639086819);
CREATE TABLE api_keys (
	tenant_id VARCHAR NOT NULL, 
	key_id VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	user_id VARCHAR, 
	hash VARCHAR NOT NULL, 
	scopes JSON NOT NULL, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT, 
	revoked_at BIGINT, 
	last_used_at BIGINT, 
	CONSTRAINT pk_api_keys PRIMARY KEY (tenant_id, key_id), 
	CONSTRAINT fk_api_keys_tenant_id_user_id FOREIGN KEY(tenant_id, user_id) REFERENCES users (tenant_id, user_id), 
	CONSTRAINT uq_api_keys_hash UNIQUE (hash)
);
INSERT INTO "api_keys" VALUES('default','01a1eca5-868b-70ef-883d-387d7f5a7d1f','agent','local agent',NULL,'3e4408babeb385a8149a6b5c76983da32b43a867175eec69b36e2e4128b4d434','["comments:write","items:create","items:read","runs:write"]',1794971633291888,NULL,NULL,NULL);
INSERT INTO "api_keys" VALUES('default','01a1eca5-8691-778a-a36e-87577a29d611','reviewer','local reviewer','01a1eca5-868a-7108-9e30-08c6d392f7ed','6feffb3367ee124b2828b800fee06bab083fda057f5a07301c5d9833ec550c6e','["admin","audit:read","comments:write","decide","items:create","items:read","policy:write","runs:write"]',1794971633297440,NULL,NULL,1794971639030564);
CREATE TABLE assistant_versions (
	tenant_id VARCHAR NOT NULL, 
	assistant_id VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	graph_id VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	description VARCHAR, 
	config JSON NOT NULL, 
	context JSON NOT NULL, 
	metadata JSON NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_assistant_versions PRIMARY KEY (tenant_id, assistant_id, version)
);
INSERT INTO "assistant_versions" VALUES('default','84930421-5020-5d51-8bcf-857331c6de07',1,'asking','asking',NULL,'{}','{}','{"created_by":"system"}',1794971638500797);
INSERT INTO "assistant_versions" VALUES('default','41e374b0-4b4e-507b-9107-62f1401f70b1',1,'counting','counting',NULL,'{}','{}','{"created_by":"system"}',1794971638500797);
INSERT INTO "assistant_versions" VALUES('default','30fe566a-1e3c-5755-b491-68f9fd261f7e',1,'paying','paying',NULL,'{}','{}','{"created_by":"system"}',1794971638500797);
CREATE TABLE assistants (
	tenant_id VARCHAR NOT NULL, 
	assistant_id VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	graph_id VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	description VARCHAR, 
	config JSON NOT NULL, 
	context JSON NOT NULL, 
	metadata JSON NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	CONSTRAINT pk_assistants PRIMARY KEY (tenant_id, assistant_id)
);
INSERT INTO "assistants" VALUES('default','84930421-5020-5d51-8bcf-857331c6de07',1,'asking','asking',NULL,'{}','{}','{"created_by":"system"}',1794971638500797,1794971638500797);
INSERT INTO "assistants" VALUES('default','41e374b0-4b4e-507b-9107-62f1401f70b1',1,'counting','counting',NULL,'{}','{}','{"created_by":"system"}',1794971638500797,1794971638500797);
INSERT INTO "assistants" VALUES('default','30fe566a-1e3c-5755-b491-68f9fd261f7e',1,'paying','paying',NULL,'{}','{}','{"created_by":"system"}',1794971638500797,1794971638500797);
CREATE TABLE checkpoint_writes (
	tenant_id VARCHAR NOT NULL, 
	thread_id VARCHAR NOT NULL, 
	ns VARCHAR NOT NULL, 
	checkpoint_id VARCHAR NOT NULL, 
	task_id VARCHAR NOT NULL, 
	idx INTEGER NOT NULL, 
	run_id VARCHAR, 
	task_path VARCHAR NOT NULL, 
	channel VARCHAR NOT NULL, 
	type VARCHAR NOT NULL, 
	value BLOB NOT NULL, 
	CONSTRAINT pk_checkpoint_writes PRIMARY KEY (tenant_id, thread_id, ns, checkpoint_id, task_id, idx)
);
INSERT INTO "checkpoint_writes" VALUES('default','00000000-0000-4000-8000-000000000001','','1f1e2fe1-8807-649c-bfff-2cce18665dec','45ea457c-d26c-c2fc-0e57-21b1183a9288',0,'01a1eca5-9adf-719f-95d5-9ea83bd29eaa','~__pregel_pull, __start__','amount','msgpack',X'0A');
INSERT INTO "checkpoint_writes" VALUES('default','00000000-0000-4000-8000-000000000001','','1f1e2fe1-8807-649c-bfff-2cce18665dec','45ea457c-d26c-c2fc-0e57-21b1183a9288',1,'01a1eca5-9adf-719f-95d5-9ea83bd29eaa','~__pregel_pull, __start__','branch:to:pay','null',X'');
INSERT INTO "checkpoint_writes" VALUES('default','00000000-0000-4000-8000-000000000001','','1f1e2fe1-8810-6e4d-8000-2c41048c47a9','dc488275-4d48-87bd-1580-7456fe2a42fb',-3,'01a1eca5-9adf-719f-95d5-9ea83bd29eaa','~__pregel_pull, pay','__interrupt__','msgpack',X'91C802400293AF6C616E6767726170682E7479706573A9496E7465727275707483A576616C756586A474797065AD746F6F6C5F617070726F76616CA467617465A6617373656E74AC746F6F6C5F63616C6C5F6964BE7061793A3132353030313333613239376639376532626662343136623A30A46E616D65A3706179A46172677381A6616D6F756E740AAB6465736372697074696F6ED940546F6F6C20657865637574696F6E20726571756972657320617070726F76616C0A0A546F6F6C3A207061790A417267733A207B27616D6F756E74273A2031307DA26964D9203938616630666432383536386330646166326530386334636536313165343435AF726573706F6E73655F736368656D6181A56F6E654F669383A474797065A66F626A656374AA70726F7065727469657381A47479706581A5636F6E7374A7617070726F7665A8726571756972656491A47479706583A474797065A66F626A656374AA70726F7065727469657382A47479706581A5636F6E7374A465646974AD6564697465645F616374696F6E83A474797065A66F626A656374AA70726F7065727469657382A46E616D6581A5636F6E7374A3706179A46172677381A474797065A66F626A656374A8726571756972656492A46E616D65A461726773A8726571756972656492A474797065AD6564697465645F616374696F6E83A474797065A66F626A656374AA70726F7065727469657382A47479706581A5636F6E7374A672656A656374A76D65737361676581A474797065A6737472696E67A8726571756972656491A474797065');
INSERT INTO "checkpoint_writes" VALUES('default','00000000-0000-4000-8000-000000000001','','1f1e2fe1-8810-6e4d-8000-2c41048c47a9','dc488275-4d48-87bd-1580-7456fe2a42fb',-4,'01a1eca5-9cfd-756c-ac15-dcf51924a968','~__pregel_pull, pay','__resume__','msgpack',X'9181A474797065A7617070726F7665');
INSERT INTO "checkpoint_writes" VALUES('default','00000000-0000-4000-8000-000000000001','','1f1e2fe1-8810-6e4d-8000-2c41048c47a9','dc488275-4d48-87bd-1580-7456fe2a42fb',1,'01a1eca5-9cfd-756c-ac15-dcf51924a968','~__pregel_pull, pay','answer','msgpack',X'A770616964203130');
INSERT INTO "checkpoint_writes" VALUES('default','00000000-0000-4000-8000-000000000002','','1f1e2fe1-8e42-6465-bfff-e2d48956e472','d083061f-ecc8-a0a6-fa12-63850569cae3',0,'01a1eca5-9db8-715c-9629-d102ca5796b2','~__pregel_pull, __start__','amount','msgpack',X'14');
INSERT INTO "checkpoint_writes" VALUES('default','00000000-0000-4000-8000-000000000002','','1f1e2fe1-8e42-6465-bfff-e2d48956e472','d083061f-ecc8-a0a6-fa12-63850569cae3',1,'01a1eca5-9db8-715c-9629-d102ca5796b2','~__pregel_pull, __start__','branch:to:pay','null',X'');
INSERT INTO "checkpoint_writes" VALUES('default','00000000-0000-4000-8000-000000000002','','1f1e2fe1-8e43-670f-8000-bfb0895cf25d','e052f328-227f-a56a-dda5-f973071536c4',-3,'01a1eca5-9db8-715c-9629-d102ca5796b2','~__pregel_pull, pay','__interrupt__','msgpack',X'91C802400293AF6C616E6767726170682E7479706573A9496E7465727275707483A576616C756586A474797065AD746F6F6C5F617070726F76616CA467617465A6617373656E74AC746F6F6C5F63616C6C5F6964BE7061793A3535323733333130666164303038336632663239313363303A30A46E616D65A3706179A46172677381A6616D6F756E7414AB6465736372697074696F6ED940546F6F6C20657865637574696F6E20726571756972657320617070726F76616C0A0A546F6F6C3A207061790A417267733A207B27616D6F756E74273A2032307DA26964D9206265643530323436376634353138623936306564393839646361373931376338AF726573706F6E73655F736368656D6181A56F6E654F669383A474797065A66F626A656374AA70726F7065727469657381A47479706581A5636F6E7374A7617070726F7665A8726571756972656491A47479706583A474797065A66F626A656374AA70726F7065727469657382A47479706581A5636F6E7374A465646974AD6564697465645F616374696F6E83A474797065A66F626A656374AA70726F7065727469657382A46E616D6581A5636F6E7374A3706179A46172677381A474797065A66F626A656374A8726571756972656492A46E616D65A461726773A8726571756972656492A474797065AD6564697465645F616374696F6E83A474797065A66F626A656374AA70726F7065727469657382A47479706581A5636F6E7374A672656A656374A76D65737361676581A474797065A6737472696E67A8726571756972656491A474797065');
INSERT INTO "checkpoint_writes" VALUES('default','00000000-0000-4000-8000-000000000003','','1f1e2fe1-900d-69b7-bfff-d1dcf913d8a1','6ca248a5-9149-0636-36b2-9a7ba093e50d',0,'01a1eca5-9e4f-749d-9114-be387efb545c','~__pregel_pull, __start__','branch:to:ask','null',X'');
INSERT INTO "checkpoint_writes" VALUES('default','00000000-0000-4000-8000-000000000003','','1f1e2fe1-900f-6238-8000-2cf091f08462','fecffcf6-ef95-3afc-761d-02c30600d506',-3,'01a1eca5-9e4f-749d-9114-be387efb545c','~__pregel_pull, ask','__interrupt__','msgpack',X'91C7660293AF6C616E6767726170682E7479706573A9496E7465727275707483A576616C7565AD576869636820636F6C6F75723FA26964D9206337346433343365346136326364383963356165656432643264646564383432AF726573706F6E73655F736368656D61C0');
INSERT INTO "checkpoint_writes" VALUES('default','00000000-0000-4000-8000-000000000004','','1f1e2fe1-9118-6a92-bfff-1cfb588e2de1','1353728a-9d19-ca48-e2dc-78d3cf6a76c0',0,'01a1eca5-9ee1-75b1-bbf9-eb73dfbb4fb3','~__pregel_pull, __start__','branch:to:begin','null',X'');
INSERT INTO "checkpoint_writes" VALUES('default','00000000-0000-4000-8000-000000000004','','1f1e2fe1-911a-6a0f-8000-afc6e1b674ed','7a15e8de-b27a-b509-b492-b2df42e560d7',0,'01a1eca5-9ee1-75b1-bbf9-eb73dfbb4fb3','~__pregel_pull, begin','steps','msgpack',X'91A5626567616E');
INSERT INTO "checkpoint_writes" VALUES('default','00000000-0000-4000-8000-000000000004','','1f1e2fe1-911a-6a0f-8000-afc6e1b674ed','7a15e8de-b27a-b509-b492-b2df42e560d7',1,'01a1eca5-9ee1-75b1-bbf9-eb73dfbb4fb3','~__pregel_pull, begin','branch:to:end','null',X'');
CREATE TABLE checkpoints (
	tenant_id VARCHAR NOT NULL, 
	thread_id VARCHAR NOT NULL, 
	ns VARCHAR NOT NULL, 
	checkpoint_id VARCHAR NOT NULL, 
	parent_id VARCHAR, 
	run_id VARCHAR, 
	type VARCHAR NOT NULL, 
	checkpoint BLOB NOT NULL, 
	metadata TEXT NOT NULL, 
	CONSTRAINT pk_checkpoints PRIMARY KEY (tenant_id, thread_id, ns, checkpoint_id)
);
INSERT INTO "checkpoints" VALUES('default','00000000-0000-4000-8000-000000000001','','1f1e2fe1-8807-649c-bfff-2cce18665dec',NULL,'01a1eca5-9adf-719f-95d5-9ea83bd29eaa','msgpack',X'87A17604A27473D920323032362D31312D31385430333A31333A35382E3538333830322B30303A3030A26964D92431663165326665312D383830372D363439632D626666662D326363653138363635646563AE6368616E6E656C5F76616C75657381A95F5F73746172745F5F81A6616D6F756E740AB06368616E6E656C5F76657273696F6E7381A95F5F73746172745F5F01AD76657273696F6E735F7365656E81A95F5F696E7075745F5F80B0757064617465645F6368616E6E656C7391A95F5F73746172745F5F','{"source":"input","step":-1,"parents":{},"run_id":"01a1eca5-9adf-719f-95d5-9ea83bd29eaa","run_attempt":1,"graph_id":"paying","assistant_id":"30fe566a-1e3c-5755-b491-68f9fd261f7e","user_id":"local-agent","langgraph_auth_user_id":"local-agent"}');
INSERT INTO "checkpoints" VALUES('default','00000000-0000-4000-8000-000000000001','','1f1e2fe1-8810-6e4d-8000-2c41048c47a9','1f1e2fe1-8807-649c-bfff-2cce18665dec','01a1eca5-9adf-719f-95d5-9ea83bd29eaa','msgpack',X'87A17604A27473D920323032362D31312D31385430333A31333A35382E3538373733302B30303A3030A26964D92431663165326665312D383831302D366534642D383030302D326334313034386334376139AE6368616E6E656C5F76616C75657382A6616D6F756E740AAD6272616E63683A746F3A706179C0B06368616E6E656C5F76657273696F6E7383A95F5F73746172745F5F02A6616D6F756E7402AD6272616E63683A746F3A70617902AD76657273696F6E735F7365656E82A95F5F696E7075745F5F80A95F5F73746172745F5F81A95F5F73746172745F5F01B0757064617465645F6368616E6E656C7392A6616D6F756E74AD6272616E63683A746F3A706179','{"source":"loop","step":0,"parents":{},"run_id":"01a1eca5-9adf-719f-95d5-9ea83bd29eaa","run_attempt":1,"graph_id":"paying","assistant_id":"30fe566a-1e3c-5755-b491-68f9fd261f7e","user_id":"local-agent","langgraph_auth_user_id":"local-agent"}');
INSERT INTO "checkpoints" VALUES('default','00000000-0000-4000-8000-000000000001','','1f1e2fe1-8d6c-6567-8001-357b3391968d','1f1e2fe1-8810-6e4d-8000-2c41048c47a9','01a1eca5-9cfd-756c-ac15-dcf51924a968','msgpack',X'87A17604A27473D920323032362D31312D31385430333A31333A35392E3134393438322B30303A3030A26964D92431663165326665312D386436632D363536372D383030312D333537623333393139363864AE6368616E6E656C5F76616C75657382A6616D6F756E740AA6616E73776572A770616964203130B06368616E6E656C5F76657273696F6E7384A95F5F73746172745F5F02A6616D6F756E7402AD6272616E63683A746F3A70617903A6616E7377657203AD76657273696F6E735F7365656E84A95F5F696E7075745F5F80A95F5F73746172745F5F81A95F5F73746172745F5F01AD5F5F696E746572727570745F5F83A6616D6F756E7402A95F5F73746172745F5F02AD6272616E63683A746F3A70617902A370617981AD6272616E63683A746F3A70617902B0757064617465645F6368616E6E656C7391A6616E73776572','{"source":"loop","step":1,"parents":{},"run_id":"01a1eca5-9cfd-756c-ac15-dcf51924a968","run_attempt":1,"graph_id":"paying","assistant_id":"30fe566a-1e3c-5755-b491-68f9fd261f7e","user_id":"local-agent","langgraph_auth_user_id":"local-agent"}');
INSERT INTO "checkpoints" VALUES('default','00000000-0000-4000-8000-000000000002','','1f1e2fe1-8e42-6465-bfff-e2d48956e472',NULL,'01a1eca5-9db8-715c-9629-d102ca5796b2','msgpack',X'87A17604A27473D920323032362D31312D31385430333A31333A35392E3233373132312B30303A3030A26964D92431663165326665312D386534322D363436352D626666662D653264343839353665343732AE6368616E6E656C5F76616C75657381A95F5F73746172745F5F81A6616D6F756E7414B06368616E6E656C5F76657273696F6E7381A95F5F73746172745F5F01AD76657273696F6E735F7365656E81A95F5F696E7075745F5F80B0757064617465645F6368616E6E656C7391A95F5F73746172745F5F','{"source":"input","step":-1,"parents":{},"run_id":"01a1eca5-9db8-715c-9629-d102ca5796b2","run_attempt":1,"graph_id":"paying","assistant_id":"30fe566a-1e3c-5755-b491-68f9fd261f7e","user_id":"local-agent","langgraph_auth_user_id":"local-agent"}');
INSERT INTO "checkpoints" VALUES('default','00000000-0000-4000-8000-000000000002','','1f1e2fe1-8e43-670f-8000-bfb0895cf25d','1f1e2fe1-8e42-6465-bfff-e2d48956e472','01a1eca5-9db8-715c-9629-d102ca5796b2','msgpack',X'87A17604A27473D920323032362D31312D31385430333A31333A35392E3233373630312B30303A3030A26964D92431663165326665312D386534332D363730662D383030302D626662303839356366323564AE6368616E6E656C5F76616C75657382A6616D6F756E7414AD6272616E63683A746F3A706179C0B06368616E6E656C5F76657273696F6E7383A95F5F73746172745F5F02A6616D6F756E7402AD6272616E63683A746F3A70617902AD76657273696F6E735F7365656E82A95F5F696E7075745F5F80A95F5F73746172745F5F81A95F5F73746172745F5F01B0757064617465645F6368616E6E656C7392A6616D6F756E74AD6272616E63683A746F3A706179','{"source":"loop","step":0,"parents":{},"run_id":"01a1eca5-9db8-715c-9629-d102ca5796b2","run_attempt":1,"graph_id":"paying","assistant_id":"30fe566a-1e3c-5755-b491-68f9fd261f7e","user_id":"local-agent","langgraph_auth_user_id":"local-agent"}');
INSERT INTO "checkpoints" VALUES('default','00000000-0000-4000-8000-000000000003','','1f1e2fe1-900d-69b7-bfff-d1dcf913d8a1',NULL,'01a1eca5-9e4f-749d-9114-be387efb545c','msgpack',X'87A17604A27473D920323032362D31312D31385430333A31333A35392E3432353236342B30303A3030A26964D92431663165326665312D393030642D363962372D626666662D643164636639313364386131AE6368616E6E656C5F76616C75657381A95F5F73746172745F5F80B06368616E6E656C5F76657273696F6E7381A95F5F73746172745F5F01AD76657273696F6E735F7365656E81A95F5F696E7075745F5F80B0757064617465645F6368616E6E656C7391A95F5F73746172745F5F','{"source":"input","step":-1,"parents":{},"run_id":"01a1eca5-9e4f-749d-9114-be387efb545c","run_attempt":1,"graph_id":"asking","assistant_id":"84930421-5020-5d51-8bcf-857331c6de07","user_id":"local-agent","langgraph_auth_user_id":"local-agent"}');
INSERT INTO "checkpoints" VALUES('default','00000000-0000-4000-8000-000000000003','','1f1e2fe1-900f-6238-8000-2cf091f08462','1f1e2fe1-900d-69b7-bfff-d1dcf913d8a1','01a1eca5-9e4f-749d-9114-be387efb545c','msgpack',X'87A17604A27473D920323032362D31312D31385430333A31333A35392E3432353839302B30303A3030A26964D92431663165326665312D393030662D363233382D383030302D326366303931663038343632AE6368616E6E656C5F76616C75657381AD6272616E63683A746F3A61736BC0B06368616E6E656C5F76657273696F6E7382A95F5F73746172745F5F02AD6272616E63683A746F3A61736B02AD76657273696F6E735F7365656E82A95F5F696E7075745F5F80A95F5F73746172745F5F81A95F5F73746172745F5F01B0757064617465645F6368616E6E656C7391AD6272616E63683A746F3A61736B','{"source":"loop","step":0,"parents":{},"run_id":"01a1eca5-9e4f-749d-9114-be387efb545c","run_attempt":1,"graph_id":"asking","assistant_id":"84930421-5020-5d51-8bcf-857331c6de07","user_id":"local-agent","langgraph_auth_user_id":"local-agent"}');
INSERT INTO "checkpoints" VALUES('default','00000000-0000-4000-8000-000000000004','','1f1e2fe1-9118-6a92-bfff-1cfb588e2de1',NULL,'01a1eca5-9ee1-75b1-bbf9-eb73dfbb4fb3','msgpack',X'87A17604A27473D920323032362D31312D31385430333A31333A35392E3533343634332B30303A3030A26964D92431663165326665312D393131382D366139322D626666662D316366623538386532646531AE6368616E6E656C5F76616C75657381A95F5F73746172745F5F80B06368616E6E656C5F76657273696F6E7381A95F5F73746172745F5F01AD76657273696F6E735F7365656E81A95F5F696E7075745F5F80B0757064617465645F6368616E6E656C7391A95F5F73746172745F5F','{"source":"input","step":-1,"parents":{},"run_id":"01a1eca5-9ee1-75b1-bbf9-eb73dfbb4fb3","run_attempt":1,"graph_id":"counting","assistant_id":"41e374b0-4b4e-507b-9107-62f1401f70b1","user_id":"local-agent","langgraph_auth_user_id":"local-agent"}');
INSERT INTO "checkpoints" VALUES('default','00000000-0000-4000-8000-000000000004','','1f1e2fe1-911a-6a0f-8000-afc6e1b674ed','1f1e2fe1-9118-6a92-bfff-1cfb588e2de1','01a1eca5-9ee1-75b1-bbf9-eb73dfbb4fb3','msgpack',X'87A17604A27473D920323032362D31312D31385430333A31333A35392E3533353435342B30303A3030A26964D92431663165326665312D393131612D366130662D383030302D616663366531623637346564AE6368616E6E656C5F76616C75657381AF6272616E63683A746F3A626567696EC0B06368616E6E656C5F76657273696F6E7382A95F5F73746172745F5F02AF6272616E63683A746F3A626567696E02AD76657273696F6E735F7365656E82A95F5F696E7075745F5F80A95F5F73746172745F5F81A95F5F73746172745F5F01B0757064617465645F6368616E6E656C7391AF6272616E63683A746F3A626567696E','{"source":"loop","step":0,"parents":{},"run_id":"01a1eca5-9ee1-75b1-bbf9-eb73dfbb4fb3","run_attempt":1,"graph_id":"counting","assistant_id":"41e374b0-4b4e-507b-9107-62f1401f70b1","user_id":"local-agent","langgraph_auth_user_id":"local-agent"}');
INSERT INTO "checkpoints" VALUES('default','00000000-0000-4000-8000-000000000004','','1f1e2fe1-9146-61c2-8001-33997b06b2b1','1f1e2fe1-911a-6a0f-8000-afc6e1b674ed','01a1eca5-9ee1-75b1-bbf9-eb73dfbb4fb3','msgpack',X'87A17604A27473D920323032362D31312D31385430333A31333A35392E3535333235332B30303A3030A26964D92431663165326665312D393134362D363163322D383030312D333339393762303662326231AE6368616E6E656C5F76616C75657382A5737465707391A5626567616EAD6272616E63683A746F3A656E64C0B06368616E6E656C5F76657273696F6E7384A95F5F73746172745F5F02AF6272616E63683A746F3A626567696E03A5737465707303AD6272616E63683A746F3A656E6403AD76657273696F6E735F7365656E83A95F5F696E7075745F5F80A95F5F73746172745F5F81A95F5F73746172745F5F01A5626567696E81AF6272616E63683A746F3A626567696E02B0757064617465645F6368616E6E656C7392AD6272616E63683A746F3A656E64A57374657073','{"source":"loop","step":1,"parents":{},"run_id":"01a1eca5-9ee1-75b1-bbf9-eb73dfbb4fb3","run_attempt":1,"graph_id":"counting","assistant_id":"41e374b0-4b4e-507b-9107-62f1401f70b1","user_id":"local-agent","langgraph_auth_user_id":"local-agent"}');
CREATE TABLE comments (
	tenant_id VARCHAR NOT NULL, 
	comment_id VARCHAR NOT NULL, 
	item_id VARCHAR NOT NULL, 
	actor VARCHAR NOT NULL, 
	text TEXT NOT NULL, 
	at BIGINT NOT NULL, 
	CONSTRAINT pk_comments PRIMARY KEY (tenant_id, comment_id)
);
CREATE TABLE decisions (
	tenant_id VARCHAR NOT NULL, 
	decision_id VARCHAR NOT NULL, 
	item_id VARCHAR NOT NULL, 
	revision INTEGER NOT NULL, 
	hash VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	verdicts JSON NOT NULL, 
	notes VARCHAR, 
	actor VARCHAR NOT NULL, 
	via VARCHAR NOT NULL, 
	standing BOOLEAN NOT NULL, 
	closes BOOLEAN NOT NULL, 
	delivery_id VARCHAR, 
	at BIGINT NOT NULL, 
	CONSTRAINT pk_decisions PRIMARY KEY (tenant_id, decision_id)
);
INSERT INTO "decisions" VALUES('default','01a1eca5-9cfd-756c-ac15-dcf49471c019','01a1eca5-9c72-72bf-a3e4-7925652825c9',1,'e14198115116f243a7a0bc90dbaae4850e218ae201aa896fff27019831812922','decision','[{"key":"0","verb":"approve"}]',NULL,'reviewer:01a1eca5-868a-7108-9e30-08c6d392f7ed','rest',1,1,'01a1eca5-9cfd-756c-ac15-dcf51924a968',1794971639034272);
CREATE TABLE deliveries (
	tenant_id VARCHAR NOT NULL, 
	delivery_id VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	subject VARCHAR NOT NULL, 
	target VARCHAR NOT NULL, 
	body TEXT NOT NULL, 
	status VARCHAR NOT NULL, 
	attempts INTEGER NOT NULL, 
	due_at BIGINT, 
	attempted_at BIGINT, 
	delivered_at BIGINT, 
	failure VARCHAR, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_deliveries PRIMARY KEY (tenant_id, delivery_id)
);
INSERT INTO "deliveries" VALUES('default','01a1eca5-9cfd-756c-ac15-dcf51924a968','resume','item:01a1eca5-9c72-72bf-a3e4-7925652825c9','thread:00000000-0000-4000-8000-000000000001','','delivered',1,NULL,1794971639062739,1794971639104742,NULL,1794971639034272);
CREATE TABLE event_heads (
	tenant_id VARCHAR NOT NULL, 
	seq BIGINT NOT NULL, 
	hash VARCHAR NOT NULL, 
	CONSTRAINT pk_event_heads PRIMARY KEY (tenant_id)
);
INSERT INTO "event_heads" VALUES('default',12,'a842c3ff4b68ff064546eb70bf945d0820d37c0295e3dcbb5f936b0d7508b9b3');
CREATE TABLE event_payloads (
	tenant_id VARCHAR NOT NULL, 
	seq INTEGER NOT NULL, 
	payload TEXT NOT NULL, 
	CONSTRAINT pk_event_payloads PRIMARY KEY (tenant_id, seq)
);
INSERT INTO "event_payloads" VALUES('default',1,'{"hash":"402f3942e376677f21d0a497ca3b37239840b732aedec5c15557f5b04ab499e7","source":"built-in","version":1}');
INSERT INTO "event_payloads" VALUES('default',2,'{"name":"local","role":"admin"}');
INSERT INTO "event_payloads" VALUES('default',3,'{"kind":"agent","name":"local agent","scopes":["comments:write","items:create","items:read","runs:write"],"user":null}');
INSERT INTO "event_payloads" VALUES('default',4,'{"kind":"reviewer","name":"local reviewer","scopes":["admin","audit:read","comments:write","decide","items:create","items:read","policy:write","runs:write"],"user":"01a1eca5-868a-7108-9e30-08c6d392f7ed"}');
INSERT INTO "event_payloads" VALUES('default',5,'{}');
INSERT INTO "event_payloads" VALUES('default',6,'{"hash":"13f108875a3b4d1480137e337193ce1ff474feef429161e70bad522f04f9dd78","source":"api","version":2}');
INSERT INTO "event_payloads" VALUES('default',7,'{"gated":true,"hash":"e14198115116f243a7a0bc90dbaae4850e218ae201aa896fff27019831812922","revision":1,"thread":"00000000-0000-4000-8000-000000000001","title":"pay","type":"tool"}');
INSERT INTO "event_payloads" VALUES('default',8,'{"actions":[{"key":"0","verb":"approve"}],"decision":"01a1eca5-9cfd-756c-ac15-dcf49471c019","hash":"e14198115116f243a7a0bc90dbaae4850e218ae201aa896fff27019831812922","notes":null,"resolution":"accepted","revision":1,"via":"rest"}');
INSERT INTO "event_payloads" VALUES('default',9,'{"attempt":1,"call":"pay:12500133a297f97e2bfb416b:0","grant":"01a1eca5-9cfe-7692-a4ca-329c2abf9c04","tool":"pay"}');
INSERT INTO "event_payloads" VALUES('default',10,'{"attempt":1,"call":"pay:12500133a297f97e2bfb416b:0","grant":"01a1eca5-9cfe-7692-a4ca-329c2abf9c04","tool":"pay"}');
INSERT INTO "event_payloads" VALUES('default',11,'{"gated":true,"hash":"3ce2ecc7436662e519bd4ffca1d7e90864c694a331e1790056b0e4524ce8dfee","revision":1,"thread":"00000000-0000-4000-8000-000000000002","title":"pay","type":"tool"}');
INSERT INTO "event_payloads" VALUES('default',12,'{"gated":false,"hash":"c5721ca95754bf4d0d40a023f696c65ebc27525b79dc439c87cf10d589217895","revision":1,"thread":"00000000-0000-4000-8000-000000000003","title":"Which colour?","type":"question"}');
CREATE TABLE events (
	tenant_id VARCHAR NOT NULL, 
	seq INTEGER NOT NULL, 
	at BIGINT NOT NULL, 
	kind VARCHAR NOT NULL, 
	actor VARCHAR NOT NULL, 
	subject VARCHAR NOT NULL, 
	payload_hash VARCHAR NOT NULL, 
	previous VARCHAR NOT NULL, 
	hash VARCHAR NOT NULL, 
	CONSTRAINT pk_events PRIMARY KEY (tenant_id, seq)
);
INSERT INTO "events" VALUES('default',1,1794971633236190,'policy.changed','system','policy','b359ac87203926a4d569c4267caf3988933b53e468e0a12c02a34309da7067d6','0000000000000000000000000000000000000000000000000000000000000000','bca0afcb57f4586e94e69d1dd9ed94b15d6cdd6131351e1e83a8e646b5d0db5c');
INSERT INTO "events" VALUES('default',2,1794971633290157,'user.created','service:operator','reviewer:01a1eca5-868a-7108-9e30-08c6d392f7ed','14654afb3837c7a698586d688f07677c069cb26629f3feebd9c99c39b65196d0','bca0afcb57f4586e94e69d1dd9ed94b15d6cdd6131351e1e83a8e646b5d0db5c','ab9d6e0b94e9bf0ff5785b16bf4cb9a961e0676c00e5fea631d2fa306ca2a720');
INSERT INTO "events" VALUES('default',3,1794971633291888,'key.created','service:operator','key:01a1eca5-868b-70ef-883d-387d7f5a7d1f','7ae307a4e3582b4565ae04bb223e4f6286bac69d2432193895db450b604f2882','ab9d6e0b94e9bf0ff5785b16bf4cb9a961e0676c00e5fea631d2fa306ca2a720','34f068988e4c4ae7db2d5b4f6932f7a50874526083b4093c6fda5491a37806bb');
INSERT INTO "events" VALUES('default',4,1794971633297440,'key.created','service:operator','key:01a1eca5-8691-778a-a36e-87577a29d611','72f74ed144a15e25e9aa448b0318055b23a1f56dc45cadee646ca45efef45a6f','34f068988e4c4ae7db2d5b4f6932f7a50874526083b4093c6fda5491a37806bb','bfb3c150b64fecfd45081cb699956a1565c179559b1f2eb6da2a1429467220c9');
INSERT INTO "events" VALUES('default',5,1794971633300880,'user.login_link_created','service:operator','reviewer:01a1eca5-868a-7108-9e30-08c6d392f7ed','44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a','bfb3c150b64fecfd45081cb699956a1565c179559b1f2eb6da2a1429467220c9','dac57d0a7d78886e8e899b985f4af9faaf2dfd66e61c325f3a76c26397154d77');
INSERT INTO "events" VALUES('default',6,1794971637033743,'policy.changed','service:operator','policy','50703da60b82ce873241af14bbedfe8d13b1afd0fbce2ef3cad539c97f0195de','dac57d0a7d78886e8e899b985f4af9faaf2dfd66e61c325f3a76c26397154d77','4d0d1efac2067dcbff28c9bf873feb22916e8e097a5760d53de133c8030702aa');
INSERT INTO "events" VALUES('default',7,1794971638736896,'item.created','agent:local-agent','item:01a1eca5-9c72-72bf-a3e4-7925652825c9','68cfb23a5bbcb1c8e29ad4930383f48a18572bad3b9dffe70ac5df57b8b003df','4d0d1efac2067dcbff28c9bf873feb22916e8e097a5760d53de133c8030702aa','699ebd314c2f8d342a70ae57f444aadbc3aaa427d47ae5608f9532e0895fa8f4');
INSERT INTO "events" VALUES('default',8,1794971639034272,'item.approved','reviewer:01a1eca5-868a-7108-9e30-08c6d392f7ed','item:01a1eca5-9c72-72bf-a3e4-7925652825c9','c2be2c9d68ebe9607b8e358885ce2dc0910576533eae9049e4ba319a1577a8a1','699ebd314c2f8d342a70ae57f444aadbc3aaa427d47ae5608f9532e0895fa8f4','6ded69324805cc71291aa5effc115fc4f3299a9b41079d1ba1018d8784ed4c13');
INSERT INTO "events" VALUES('default',9,1794971639121529,'grant.started','run:01a1eca5-9cfd-756c-ac15-dcf51924a968','item:01a1eca5-9c72-72bf-a3e4-7925652825c9','1fc0ea0c4aaf38e24545535c6d936d566fc98c5e3a904fcd3f68245ab57a8c09','6ded69324805cc71291aa5effc115fc4f3299a9b41079d1ba1018d8784ed4c13','b0f5ed1981104d77f8840021a1cb836afb1100160baf1d032e0bde04bf5bf05f');
INSERT INTO "events" VALUES('default',10,1794971639138088,'grant.done','run:01a1eca5-9cfd-756c-ac15-dcf51924a968','item:01a1eca5-9c72-72bf-a3e4-7925652825c9','1fc0ea0c4aaf38e24545535c6d936d566fc98c5e3a904fcd3f68245ab57a8c09','b0f5ed1981104d77f8840021a1cb836afb1100160baf1d032e0bde04bf5bf05f','05b2b4c99c04658f4d060fd18d82283c1565842bdf14da68488a360fe9a6f208');
INSERT INTO "events" VALUES('default',11,1794971639245545,'item.created','agent:local-agent','item:01a1eca5-9dce-7566-85e8-daafca9cb6fa','2cca33c558bd9dee4864356117c83ba07e785a187f0aef1ab58a49bb6158268a','05b2b4c99c04658f4d060fd18d82283c1565842bdf14da68488a360fe9a6f208','4b3fffdc2e52b6dee330a154bca170eb1a8225f8a24c80869b560329a2a12aa9');
INSERT INTO "events" VALUES('default',12,1794971639462802,'item.created','agent:local-agent','item:01a1eca5-9ea8-70dd-a5fb-9efa10bacf15','228cb2ac29463a92cc05f81d2954e4d9186a226e177ab2159afec1c3b3718e6a','4b3fffdc2e52b6dee330a154bca170eb1a8225f8a24c80869b560329a2a12aa9','a842c3ff4b68ff064546eb70bf945d0820d37c0295e3dcbb5f936b0d7508b9b3');
CREATE TABLE frames (
	tenant_id VARCHAR NOT NULL, 
	thread_id VARCHAR NOT NULL, 
	run_id VARCHAR NOT NULL, 
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	event VARCHAR NOT NULL, 
	data TEXT NOT NULL, 
	at BIGINT NOT NULL, 
	CONSTRAINT pk_frames PRIMARY KEY (run_id, seq)
);
CREATE TABLE grants (
	tenant_id VARCHAR NOT NULL, 
	grant_id VARCHAR NOT NULL, 
	item_id VARCHAR NOT NULL, 
	revision INTEGER NOT NULL, 
	decision_id VARCHAR NOT NULL, 
	thread_id VARCHAR NOT NULL, 
	call_id VARCHAR NOT NULL, 
	tool VARCHAR NOT NULL, 
	hash VARCHAR NOT NULL, 
	status VARCHAR NOT NULL, 
	not_before BIGINT NOT NULL, 
	expires_at BIGINT NOT NULL, 
	task VARCHAR, 
	doubt_id VARCHAR, 
	run_id VARCHAR, 
	attempt INTEGER, 
	result JSON, 
	created_at BIGINT NOT NULL, 
	started_at BIGINT, 
	ended_at BIGINT, 
	CONSTRAINT pk_grants PRIMARY KEY (tenant_id, grant_id)
);
INSERT INTO "grants" VALUES('default','01a1eca5-9cfe-7692-a4ca-329c2abf9c04','01a1eca5-9c72-72bf-a3e4-7925652825c9',1,'01a1eca5-9cfd-756c-ac15-dcf49471c019','00000000-0000-4000-8000-000000000001','pay:12500133a297f97e2bfb416b:0','pay','8c42a295bbe98af29c7407f8803a5d3a280ec65740e4711fcce0c14ae78b67b8','done',1794971639034272,1794972539034272,'pay:dc488275-4d48-87bd-1580-7456fe2a42fb',NULL,'01a1eca5-9cfd-756c-ac15-dcf51924a968',1,'{"value":"paid 10"}',1794971639034272,1794971639121529,1794971639138088);
CREATE TABLE inboxes (
	tenant_id VARCHAR NOT NULL, 
	inbox_id VARCHAR NOT NULL, 
	owner VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	filter VARCHAR NOT NULL, 
	graph_id VARCHAR, 
	url VARCHAR, 
	position INTEGER NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_inboxes PRIMARY KEY (tenant_id, inbox_id), 
	CONSTRAINT uq_inboxes_tenant_id_owner_position UNIQUE (tenant_id, owner, position)
);
CREATE TABLE item_links (
	tenant_id VARCHAR NOT NULL, 
	item_id VARCHAR NOT NULL, 
	thread_id VARCHAR NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_item_links PRIMARY KEY (tenant_id, item_id, thread_id)
);
CREATE TABLE item_marks (
	tenant_id VARCHAR NOT NULL, 
	item_id VARCHAR NOT NULL, 
	actor VARCHAR NOT NULL, 
	draft JSON, 
	snoozed_until BIGINT, 
	CONSTRAINT pk_item_marks PRIMARY KEY (tenant_id, item_id, actor)
);
CREATE TABLE item_revisions (
	tenant_id VARCHAR NOT NULL, 
	item_id VARCHAR NOT NULL, 
	number INTEGER NOT NULL, 
	hash VARCHAR NOT NULL, 
	asked JSON NOT NULL, 
	response_schema JSON, 
	calls JSON NOT NULL, 
	edits JSON NOT NULL, 
	author VARCHAR NOT NULL, 
	notes VARCHAR, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_item_revisions PRIMARY KEY (tenant_id, item_id, number)
);
INSERT INTO "item_revisions" VALUES('default','01a1eca5-9c72-72bf-a3e4-7925652825c9',1,'e14198115116f243a7a0bc90dbaae4850e218ae201aa896fff27019831812922','{"type":"tool_approval","gate":"assent","tool_call_id":"pay:12500133a297f97e2bfb416b:0","name":"pay","args":{"amount":10},"description":"Tool execution requires approval\n\nTool: pay\nArgs: {''amount'': 10}"}','{"oneOf":[{"type":"object","properties":{"type":{"const":"approve"}},"required":["type"]},{"type":"object","properties":{"type":{"const":"edit"},"edited_action":{"type":"object","properties":{"name":{"const":"pay"},"args":{"type":"object"}},"required":["name","args"]}},"required":["type","edited_action"]},{"type":"object","properties":{"type":{"const":"reject"},"message":{"type":"string"}},"required":["type"]}]}','{}','{}','agent:local-agent',NULL,1794971638736896);
INSERT INTO "item_revisions" VALUES('default','01a1eca5-9dce-7566-85e8-daafca9cb6fa',1,'3ce2ecc7436662e519bd4ffca1d7e90864c694a331e1790056b0e4524ce8dfee','{"type":"tool_approval","gate":"assent","tool_call_id":"pay:55273310fad0083f2f2913c0:0","name":"pay","args":{"amount":20},"description":"Tool execution requires approval\n\nTool: pay\nArgs: {''amount'': 20}"}','{"oneOf":[{"type":"object","properties":{"type":{"const":"approve"}},"required":["type"]},{"type":"object","properties":{"type":{"const":"edit"},"edited_action":{"type":"object","properties":{"name":{"const":"pay"},"args":{"type":"object"}},"required":["name","args"]}},"required":["type","edited_action"]},{"type":"object","properties":{"type":{"const":"reject"},"message":{"type":"string"}},"required":["type"]}]}','{}','{}','agent:local-agent',NULL,1794971639245545);
INSERT INTO "item_revisions" VALUES('default','01a1eca5-9ea8-70dd-a5fb-9efa10bacf15',1,'c5721ca95754bf4d0d40a023f696c65ebc27525b79dc439c87cf10d589217895','"Which colour?"',NULL,'{}','{}','agent:local-agent',NULL,1794971639462802);
CREATE TABLE items (
	tenant_id VARCHAR NOT NULL, 
	item_id VARCHAR NOT NULL, 
	status VARCHAR NOT NULL, 
	open BOOLEAN NOT NULL, 
	resolution VARCHAR, 
	revision INTEGER NOT NULL, 
	hash VARCHAR NOT NULL, 
	type VARCHAR NOT NULL, 
	dialect VARCHAR NOT NULL, 
	title VARCHAR NOT NULL, 
	summary VARCHAR NOT NULL, 
	gated BOOLEAN NOT NULL, 
	risk VARCHAR, 
	policy JSON NOT NULL, 
	execution VARCHAR, 
	deployment VARCHAR NOT NULL, 
	graph_id VARCHAR, 
	assistant_id VARCHAR, 
	thread_id VARCHAR, 
	run_id VARCHAR, 
	interrupt_id VARCHAR, 
	doubt_id VARCHAR, 
	requester VARCHAR NOT NULL, 
	recipient VARCHAR, 
	entity_type VARCHAR, 
	entity_id VARCHAR, 
	dedupe_key VARCHAR, 
	callback VARCHAR, 
	follows VARCHAR, 
	approvals INTEGER NOT NULL, 
	claimed_by VARCHAR, 
	claimed_until BIGINT, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	decided_at BIGINT, 
	decided_by VARCHAR, 
	undo_until BIGINT, 
	expires_at BIGINT, 
	due_at BIGINT, 
	due VARCHAR, 
	CONSTRAINT pk_items PRIMARY KEY (tenant_id, item_id)
);
INSERT INTO "items" VALUES('default','01a1eca5-9c72-72bf-a3e4-7925652825c9','APPROVED',0,'accepted',1,'e14198115116f243a7a0bc90dbaae4850e218ae201aa896fff27019831812922','tool','tool_approval','pay','{"amount":10}',1,NULL,'{"version":2,"rules":[{"name":"payments","then":"ask","tool":"pay","graph":"*","agent":"*","tenant":"*","when":null,"by":{"roles":[],"people":[],"groups":[]},"approvals":1,"separate_duties":false,"risk":null,"deadline":null,"remind_after":null,"after_deadline":"expire","escalate_to":{"roles":[],"people":[],"groups":[]},"escalation_period":null,"verbs":null,"pending_ttl":"3650d","execution_ttl":"15m","mask":[]}],"effect":"ask","approvals":1,"problems":[],"escalated":false}','done','local','paying','30fe566a-1e3c-5755-b491-68f9fd261f7e','00000000-0000-4000-8000-000000000001','01a1eca5-9adf-719f-95d5-9ea83bd29eaa','98af0fd28568c0daf2e08c4ce611e445',NULL,'agent:local-agent',NULL,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,1794971638736896,1794971639138088,1794971639034272,'reviewer:01a1eca5-868a-7108-9e30-08c6d392f7ed',NULL,2110331638736896,NULL,NULL);
INSERT INTO "items" VALUES('default','01a1eca5-9dce-7566-85e8-daafca9cb6fa','PENDING',1,NULL,1,'3ce2ecc7436662e519bd4ffca1d7e90864c694a331e1790056b0e4524ce8dfee','tool','tool_approval','pay','{"amount":20}',1,NULL,'{"version":2,"rules":[{"name":"payments","then":"ask","tool":"pay","graph":"*","agent":"*","tenant":"*","when":null,"by":{"roles":[],"people":[],"groups":[]},"approvals":1,"separate_duties":false,"risk":null,"deadline":null,"remind_after":null,"after_deadline":"expire","escalate_to":{"roles":[],"people":[],"groups":[]},"escalation_period":null,"verbs":null,"pending_ttl":"3650d","execution_ttl":"15m","mask":[]}],"effect":"ask","approvals":1,"problems":[],"escalated":false}',NULL,'local','paying','30fe566a-1e3c-5755-b491-68f9fd261f7e','00000000-0000-4000-8000-000000000002','01a1eca5-9db8-715c-9629-d102ca5796b2','bed502467f4518b960ed989dca7917c8',NULL,'agent:local-agent',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,1794971639245545,1794971639245545,NULL,NULL,NULL,2110331639245545,2110331639245545,'expire');
INSERT INTO "items" VALUES('default','01a1eca5-9ea8-70dd-a5fb-9efa10bacf15','PENDING',1,NULL,1,'c5721ca95754bf4d0d40a023f696c65ebc27525b79dc439c87cf10d589217895','question','raw','Which colour?','Which colour?',0,NULL,'{"version":2,"rules":[{"name":"questions","then":"advise","tool":"*","graph":"asking","agent":"*","tenant":"*","when":null,"by":{"roles":[],"people":[],"groups":[]},"approvals":1,"separate_duties":false,"risk":null,"deadline":null,"remind_after":null,"after_deadline":"expire","escalate_to":{"roles":[],"people":[],"groups":[]},"escalation_period":null,"verbs":null,"pending_ttl":null,"execution_ttl":"15m","mask":[]}],"effect":"advise","approvals":1,"problems":[],"escalated":false}',NULL,'local','asking','84930421-5020-5d51-8bcf-857331c6de07','00000000-0000-4000-8000-000000000003','01a1eca5-9e4f-749d-9114-be387efb545c','c74d343e4a62cd89c5aeed2d2dded842',NULL,'agent:local-agent',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,1794971639462802,1794971639462802,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE login_links (
	tenant_id VARCHAR NOT NULL, 
	hash VARCHAR NOT NULL, 
	user_id VARCHAR NOT NULL, 
	expires_at BIGINT NOT NULL, 
	CONSTRAINT pk_login_links PRIMARY KEY (hash), 
	CONSTRAINT fk_login_links_tenant_id_user_id FOREIGN KEY(tenant_id, user_id) REFERENCES users (tenant_id, user_id)
);
INSERT INTO "login_links" VALUES('default','36de0ec7a17f5684a25c253d356d9b2aa85a2e922a6849e779be2e4a51461c41','01a1eca5-868a-7108-9e30-08c6d392f7ed',1794972533300880);
CREATE TABLE memories (
	tenant_id VARCHAR NOT NULL, 
	namespace VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	value JSON NOT NULL, 
	ttl_minutes FLOAT, 
	expires_at BIGINT, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	CONSTRAINT pk_memories PRIMARY KEY (tenant_id, namespace, "key")
);
CREATE TABLE policies (
	tenant_id VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	policy JSON NOT NULL, 
	hash VARCHAR NOT NULL, 
	source VARCHAR NOT NULL, 
	actor VARCHAR NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_policies PRIMARY KEY (tenant_id, version)
);
INSERT INTO "policies" VALUES('default',1,'{"rules":[],"default":{"name":"default","then":"advise","tool":"*","graph":"*","agent":"*","tenant":"*","when":null,"by":{"roles":[],"people":[],"groups":[]},"approvals":1,"separate_duties":false,"risk":null,"deadline":null,"remind_after":null,"after_deadline":"expire","escalate_to":{"roles":[],"people":[],"groups":[]},"escalation_period":null,"verbs":null,"pending_ttl":null,"execution_ttl":"15m","mask":[]}}','402f3942e376677f21d0a497ca3b37239840b732aedec5c15557f5b04ab499e7','built-in','system',1794971633236190);
INSERT INTO "policies" VALUES('default',2,'{"rules":[{"name":"payments","then":"ask","tool":"pay","graph":"*","agent":"*","tenant":"*","when":null,"by":{"roles":[],"people":[],"groups":[]},"approvals":1,"separate_duties":false,"risk":null,"deadline":null,"remind_after":null,"after_deadline":"expire","escalate_to":{"roles":[],"people":[],"groups":[]},"escalation_period":null,"verbs":null,"pending_ttl":"3650d","execution_ttl":"15m","mask":[]},{"name":"questions","then":"advise","tool":"*","graph":"asking","agent":"*","tenant":"*","when":null,"by":{"roles":[],"people":[],"groups":[]},"approvals":1,"separate_duties":false,"risk":null,"deadline":null,"remind_after":null,"after_deadline":"expire","escalate_to":{"roles":[],"people":[],"groups":[]},"escalation_period":null,"verbs":null,"pending_ttl":null,"execution_ttl":"15m","mask":[]}],"default":{"name":"default","then":"ask","tool":"*","graph":"*","agent":"*","tenant":"*","when":null,"by":{"roles":[],"people":[],"groups":[]},"approvals":1,"separate_duties":false,"risk":null,"deadline":null,"remind_after":null,"after_deadline":"expire","escalate_to":{"roles":[],"people":[],"groups":[]},"escalation_period":null,"verbs":null,"pending_ttl":null,"execution_ttl":"15m","mask":[]}}','13f108875a3b4d1480137e337193ce1ff474feef429161e70bad522f04f9dd78','api','service:operator',1794971637033743);
CREATE TABLE requests (
	tenant_id VARCHAR NOT NULL, 
	actor VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	body_hash VARCHAR NOT NULL, 
	answer JSON NOT NULL, 
	at BIGINT NOT NULL, 
	CONSTRAINT pk_requests PRIMARY KEY (tenant_id, actor, "key")
);
CREATE TABLE runs (
	tenant_id VARCHAR NOT NULL, 
	run_id VARCHAR NOT NULL, 
	thread_id VARCHAR NOT NULL, 
	assistant_id VARCHAR NOT NULL, 
	graph_id VARCHAR NOT NULL, 
	status VARCHAR NOT NULL, 
	position BIGINT NOT NULL, 
	attempt INTEGER NOT NULL, 
	actor VARCHAR DEFAULT 'system' NOT NULL, 
	answers BOOLEAN NOT NULL, 
	wake_at BIGINT, 
	cancel VARCHAR, 
	"temporary" BOOLEAN NOT NULL, 
	multitask_strategy VARCHAR NOT NULL, 
	metadata JSON NOT NULL, 
	kwargs JSON NOT NULL, 
	error JSON, 
	webhook VARCHAR, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	started_at BIGINT, 
	ended_at BIGINT, 
	CONSTRAINT pk_runs PRIMARY KEY (tenant_id, run_id), 
	CONSTRAINT fk_runs_tenant_id_thread_id FOREIGN KEY(tenant_id, thread_id) REFERENCES threads (tenant_id, thread_id) ON DELETE CASCADE
);
INSERT INTO "runs" VALUES('default','01a1eca5-9adf-719f-95d5-9ea83bd29eaa','00000000-0000-4000-8000-000000000001','30fe566a-1e3c-5755-b491-68f9fd261f7e','paying','success',1,1,'agent:local-agent',0,NULL,NULL,0,'reject','{"created_by":"system","graph_id":"paying","assistant_id":"30fe566a-1e3c-5755-b491-68f9fd261f7e"}','{"input":{"amount":10},"command":null,"checkpoint":null,"config":{"configurable":{"user_id":"local-agent","langgraph_auth_user":{"identity":"local-agent","display_name":"local-agent","is_authenticated":true,"permissions":["items:read","runs:write"]},"langgraph_auth_user_id":"local-agent","langgraph_auth_permissions":["items:read","runs:write"]},"metadata":{}},"context":{},"stream_mode":["values"],"interrupt_before":null,"interrupt_after":null,"webhook":null,"feedback_keys":null,"temporary":false,"subgraphs":false,"resumable":false,"checkpoint_during":true,"durability":"async"}',NULL,NULL,1794971638519402,1794971638736896,1794971638519402,1794971638736896);
INSERT INTO "runs" VALUES('default','01a1eca5-9cfd-756c-ac15-dcf51924a968','00000000-0000-4000-8000-000000000001','30fe566a-1e3c-5755-b491-68f9fd261f7e','paying','success',1,1,'agent:local-agent',1,NULL,NULL,0,'enqueue','{"created_by":"system","graph_id":"paying","assistant_id":"30fe566a-1e3c-5755-b491-68f9fd261f7e"}','{"input":null,"command":{"resume":{"98af0fd28568c0daf2e08c4ce611e445":{"type":"approve"}}},"checkpoint":null,"config":{"configurable":{"user_id":"local-agent","langgraph_auth_user":{"identity":"local-agent","display_name":"local-agent","is_authenticated":true,"permissions":["items:read","runs:write"]},"langgraph_auth_user_id":"local-agent","langgraph_auth_permissions":["items:read","runs:write"]},"metadata":{}},"context":{},"stream_mode":["values"],"interrupt_before":null,"interrupt_after":null,"webhook":null,"feedback_keys":null,"temporary":false,"subgraphs":false,"resumable":false,"checkpoint_during":true,"durability":"sync"}',NULL,NULL,1794971639086819,1794971639152644,1794971639086819,1794971639152644);
INSERT INTO "runs" VALUES('default','01a1eca5-9db8-715c-9629-d102ca5796b2','00000000-0000-4000-8000-000000000002','30fe566a-1e3c-5755-b491-68f9fd261f7e','paying','success',1,1,'agent:local-agent',0,NULL,NULL,0,'reject','{"created_by":"system","graph_id":"paying","assistant_id":"30fe566a-1e3c-5755-b491-68f9fd261f7e"}','{"input":{"amount":20},"command":null,"checkpoint":null,"config":{"configurable":{"user_id":"local-agent","langgraph_auth_user":{"identity":"local-agent","display_name":"local-agent","is_authenticated":true,"permissions":["items:read","runs:write"]},"langgraph_auth_user_id":"local-agent","langgraph_auth_permissions":["items:read","runs:write"]},"metadata":{}},"context":{},"stream_mode":["values"],"interrupt_before":null,"interrupt_after":null,"webhook":null,"feedback_keys":null,"temporary":false,"subgraphs":false,"resumable":false,"checkpoint_during":true,"durability":"async"}',NULL,NULL,1794971639224504,1794971639245545,1794971639224504,1794971639245545);
INSERT INTO "runs" VALUES('default','01a1eca5-9e4f-749d-9114-be387efb545c','00000000-0000-4000-8000-000000000003','84930421-5020-5d51-8bcf-857331c6de07','asking','success',1,1,'agent:local-agent',0,NULL,NULL,0,'reject','{"created_by":"system","graph_id":"asking","assistant_id":"84930421-5020-5d51-8bcf-857331c6de07"}','{"input":{},"command":null,"checkpoint":null,"config":{"configurable":{"user_id":"local-agent","langgraph_auth_user":{"identity":"local-agent","display_name":"local-agent","is_authenticated":true,"permissions":["items:read","runs:write"]},"langgraph_auth_user_id":"local-agent","langgraph_auth_permissions":["items:read","runs:write"]},"metadata":{}},"context":{},"stream_mode":["values"],"interrupt_before":null,"interrupt_after":null,"webhook":null,"feedback_keys":null,"temporary":false,"subgraphs":false,"resumable":false,"checkpoint_during":true,"durability":"async"}',NULL,NULL,1794971639376110,1794971639462802,1794971639376110,1794971639462802);
INSERT INTO "runs" VALUES('default','01a1eca5-9ee1-75b1-bbf9-eb73dfbb4fb3','00000000-0000-4000-8000-000000000004','41e374b0-4b4e-507b-9107-62f1401f70b1','counting','running',1,1,'agent:local-agent',0,NULL,NULL,0,'reject','{"created_by":"system","graph_id":"counting","assistant_id":"41e374b0-4b4e-507b-9107-62f1401f70b1"}','{"input":{},"command":null,"checkpoint":null,"config":{"configurable":{"user_id":"local-agent","langgraph_auth_user":{"identity":"local-agent","display_name":"local-agent","is_authenticated":true,"permissions":["items:read","runs:write"]},"langgraph_auth_user_id":"local-agent","langgraph_auth_permissions":["items:read","runs:write"]},"metadata":{}},"context":{},"stream_mode":["values"],"interrupt_before":null,"interrupt_after":null,"webhook":null,"feedback_keys":null,"temporary":false,"subgraphs":false,"resumable":false,"checkpoint_during":true,"durability":"async"}',NULL,NULL,1794971639521882,1794971639521882,1794971639521882,NULL);
CREATE TABLE sessions (
	tenant_id VARCHAR NOT NULL, 
	hash VARCHAR NOT NULL, 
	user_id VARCHAR NOT NULL, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT NOT NULL, 
	CONSTRAINT pk_sessions PRIMARY KEY (hash), 
	CONSTRAINT fk_sessions_tenant_id_user_id FOREIGN KEY(tenant_id, user_id) REFERENCES users (tenant_id, user_id)
);
CREATE TABLE standing_approvals (
	tenant_id VARCHAR NOT NULL, 
	approval_id VARCHAR NOT NULL, 
	tool VARCHAR NOT NULL, 
	graph VARCHAR, 
	condition VARCHAR, 
	args_hash VARCHAR, 
	item_id VARCHAR, 
	actor VARCHAR NOT NULL, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT NOT NULL, 
	uses_left INTEGER, 
	uses INTEGER NOT NULL, 
	revoked_at BIGINT, 
	CONSTRAINT pk_standing_approvals PRIMARY KEY (tenant_id, approval_id)
);
CREATE TABLE threads (
	tenant_id VARCHAR NOT NULL, 
	thread_id VARCHAR NOT NULL, 
	status VARCHAR NOT NULL, 
	graph_id VARCHAR, 
	assistant_id VARCHAR, 
	metadata JSON NOT NULL, 
	config JSON NOT NULL, 
	"values" JSON, 
	interrupts JSON, 
	error JSON, 
	next JSON, 
	shown BOOLEAN NOT NULL, 
	ttl_minutes FLOAT, 
	ttl_strategy VARCHAR, 
	expires_at BIGINT, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	state_updated_at BIGINT, 
	CONSTRAINT pk_threads PRIMARY KEY (tenant_id, thread_id)
);
INSERT INTO "threads" VALUES('default','00000000-0000-4000-8000-000000000001','idle','paying','30fe566a-1e3c-5755-b491-68f9fd261f7e','{"graph_id":"paying","assistant_id":"30fe566a-1e3c-5755-b491-68f9fd261f7e"}','{}','{"amount":10,"answer":"paid 10"}','{}',NULL,'[]',0,NULL,NULL,NULL,1794971638476802,1794971639152644,1794971639152644);
INSERT INTO "threads" VALUES('default','00000000-0000-4000-8000-000000000002','interrupted','paying','30fe566a-1e3c-5755-b491-68f9fd261f7e','{"graph_id":"paying","assistant_id":"30fe566a-1e3c-5755-b491-68f9fd261f7e"}','{}','{"amount":20}','{"e052f328-227f-a56a-dda5-f973071536c4":[{"id":"bed502467f4518b960ed989dca7917c8","value":{"type":"tool_approval","gate":"assent","tool_call_id":"pay:55273310fad0083f2f2913c0:0","name":"pay","args":{"amount":20},"description":"Tool execution requires approval\n\nTool: pay\nArgs: {''amount'': 20}"},"response_schema":{"oneOf":[{"type":"object","properties":{"type":{"const":"approve"}},"required":["type"]},{"type":"object","properties":{"type":{"const":"edit"},"edited_action":{"type":"object","properties":{"name":{"const":"pay"},"args":{"type":"object"}},"required":["name","args"]}},"required":["type","edited_action"]},{"type":"object","properties":{"type":{"const":"reject"},"message":{"type":"string"}},"required":["type"]}]}}]}',NULL,'["pay"]',1,NULL,NULL,NULL,1794971639218651,1794971639245545,1794971639245545);
INSERT INTO "threads" VALUES('default','00000000-0000-4000-8000-000000000003','interrupted','asking','84930421-5020-5d51-8bcf-857331c6de07','{"graph_id":"asking","assistant_id":"84930421-5020-5d51-8bcf-857331c6de07"}','{}','{}','{"fecffcf6-ef95-3afc-761d-02c30600d506":[{"id":"c74d343e4a62cd89c5aeed2d2dded842","value":"Which colour?"}]}',NULL,'["ask"]',1,NULL,NULL,NULL,1794971639366241,1794971639462802,1794971639462802);
INSERT INTO "threads" VALUES('default','00000000-0000-4000-8000-000000000004','busy','counting','41e374b0-4b4e-507b-9107-62f1401f70b1','{"graph_id":"counting","assistant_id":"41e374b0-4b4e-507b-9107-62f1401f70b1"}','{}',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,1794971639516594,1794971639521882,NULL);
CREATE TABLE users (
	tenant_id VARCHAR NOT NULL, 
	user_id VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	email VARCHAR, 
	role VARCHAR NOT NULL, 
	groups JSON DEFAULT '[]' NOT NULL, 
	created_at BIGINT NOT NULL, 
	disabled_at BIGINT, 
	CONSTRAINT pk_users PRIMARY KEY (tenant_id, user_id), 
	CONSTRAINT uq_users_tenant_id_name UNIQUE (tenant_id, name)
);
INSERT INTO "users" VALUES('default','01a1eca5-868a-7108-9e30-08c6d392f7ed','local',NULL,'admin','[]',1794971633290157,NULL);
CREATE INDEX ix_events_tenant_id_at ON events (tenant_id, at);
CREATE INDEX ix_events_tenant_id_subject_seq ON events (tenant_id, subject, seq);
CREATE INDEX ix_assistants_tenant_id_created_at_assistant_id ON assistants (tenant_id, created_at, assistant_id);
CREATE INDEX ix_threads_tenant_id_graph_id_status_created_at_thread_id ON threads (tenant_id, graph_id, status, created_at, thread_id);
CREATE INDEX ix_threads_tenant_id_assistant_id_status_created_at_thread_id ON threads (tenant_id, assistant_id, status, created_at, thread_id);
CREATE INDEX ix_threads_tenant_id_updated_at_thread_id ON threads (tenant_id, updated_at, thread_id);
CREATE INDEX ix_threads_expires_at ON threads (expires_at);
CREATE INDEX ix_threads_tenant_id_created_at_thread_id ON threads (tenant_id, created_at, thread_id);
CREATE INDEX ix_threads_tenant_id_status_created_at_thread_id ON threads (tenant_id, status, created_at, thread_id);
CREATE INDEX ix_deliveries_tenant_id_subject_created_at_delivery_id ON deliveries (tenant_id, subject, created_at, delivery_id);
CREATE INDEX ix_deliveries_attempted_at ON deliveries (attempted_at);
CREATE INDEX ix_deliveries_due_at ON deliveries (due_at);
CREATE INDEX ix_deliveries_tenant_id_created_at_delivery_id ON deliveries (tenant_id, created_at, delivery_id);
CREATE INDEX ix_deliveries_tenant_id_status_created_at_delivery_id ON deliveries (tenant_id, status, created_at, delivery_id);
CREATE INDEX ix_items_tenant_id_graph_id_open_created_at_item_id ON items (tenant_id, graph_id, open, created_at, item_id);
CREATE INDEX ix_items_tenant_id_execution_created_at_item_id ON items (tenant_id, execution, created_at, item_id);
CREATE INDEX ix_items_tenant_id_open_created_at_item_id ON items (tenant_id, open, created_at, item_id);
CREATE UNIQUE INDEX ix_items_dedupe ON items (tenant_id, requester, dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX ix_items_tenant_id_created_at_item_id ON items (tenant_id, created_at, item_id);
CREATE INDEX ix_items_tenant_id_status_created_at_item_id ON items (tenant_id, status, created_at, item_id);
CREATE INDEX ix_items_tenant_id_assistant_id_open_created_at_item_id ON items (tenant_id, assistant_id, open, created_at, item_id);
CREATE INDEX ix_items_tenant_id_execution_open_created_at_item_id ON items (tenant_id, execution, open, created_at, item_id);
CREATE INDEX ix_items_due_at ON items (due_at);
CREATE INDEX ix_items_tenant_id_thread_id_interrupt_id_created_at ON items (tenant_id, thread_id, interrupt_id, created_at);
CREATE UNIQUE INDEX ix_items_one_open ON items (tenant_id, deployment, thread_id, interrupt_id) WHERE open AND interrupt_id IS NOT NULL;
CREATE INDEX ix_items_tenant_id_type_open_created_at_item_id ON items (tenant_id, type, open, created_at, item_id);
CREATE UNIQUE INDEX ix_decisions_one_closing ON decisions (tenant_id, item_id) WHERE closes AND standing;
CREATE INDEX ix_decisions_tenant_id_item_id_at_decision_id ON decisions (tenant_id, item_id, at, decision_id);
CREATE INDEX ix_grants_tenant_id_thread_id_call_id_created_at ON grants (tenant_id, thread_id, call_id, created_at);
CREATE INDEX ix_grants_tenant_id_item_id ON grants (tenant_id, item_id);
CREATE INDEX ix_comments_tenant_id_item_id_at_comment_id ON comments (tenant_id, item_id, at, comment_id);
CREATE INDEX ix_standing_approvals_tenant_id_tool_created_at ON standing_approvals (tenant_id, tool, created_at);
CREATE INDEX ix_standing_approvals_tenant_id_created_at_approval_id ON standing_approvals (tenant_id, created_at, approval_id);
CREATE INDEX ix_requests_at ON requests (at);
CREATE INDEX ix_memories_expires_at ON memories (expires_at);
CREATE INDEX ix_api_keys_tenant_id_created_at_key_id ON api_keys (tenant_id, created_at, key_id);
CREATE INDEX ix_sessions_expires_at ON sessions (expires_at);
CREATE INDEX ix_login_links_expires_at ON login_links (expires_at);
CREATE INDEX ix_runs_active ON runs (tenant_id, thread_id, position) WHERE status IN ('pending', 'running');
CREATE INDEX ix_runs_tenant_id_thread_id_created_at_run_id ON runs (tenant_id, thread_id, created_at, run_id);
CREATE UNIQUE INDEX ix_runs_one_running ON runs (tenant_id, thread_id) WHERE status = 'running';
CREATE UNIQUE INDEX ix_answers_one_standing ON answers (tenant_id, thread_id, interrupt_id) WHERE standing;
COMMIT;
