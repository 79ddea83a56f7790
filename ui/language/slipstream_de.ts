<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de" sourcelanguage="en">
  <context>
    <name>slipstream</name>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>{how} {spans}, of {n_all} {words}.</source>
      <translation>{how} {spans}, von {n_all} {words}.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>passages that fit</source>
      <translation>passende Stellen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>Sent as an image.</source>
      <translation>Als Bild gesendet.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>When you send, the passages that fit your question are chosen.</source>
      <translation>Beim Senden werden die Stellen gewählt, die zu deiner Frage passen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>Sent whole.</source>
      <translation>Ganz gesendet.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>Sent:</source>
      <translation>Gesendet:</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>Remove {name}</source>
      <translation>{name} entfernen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>about {tokens}</source>
      <translation>etwa {tokens}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>You chose</source>
      <translation>Von dir gewählt:</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>Chosen by the words of the question:</source>
      <translation>Nach den Wörtern der Frage gewählt:</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>Chosen by meaning:</source>
      <translation>Nach der Bedeutung gewählt:</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>part</source>
      <translation>Teil</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>parts</source>
      <translation>Teilen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>reading {share:.0%}</source>
      <translation>liest {share:.0%}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>reading…</source>
      <translation>liest…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>Send all of it</source>
      <translation>Alles senden</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>Choose pages or parts…</source>
      <translation>Seiten oder Teile wählen…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/chip.py" />
      <source>Send the passages that fit the question</source>
      <translation>Die Stellen senden, die zur Frage passen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/file_reading.py" />
      <source>{name} could not be read: it may be damaged. Save it anew, or as text.</source>
      <translation>{name} ließ sich nicht lesen: Die Datei ist vielleicht beschädigt. Speichere sie neu oder als Text.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/file_reading.py" />
      <source>{name} takes too long to read: attach a part of it.</source>
      <translation>{name} zu lesen dauert zu lange: Hänge einen Teil davon an.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/pages_dialog.py" />
      <source>What to send of {name}</source>
      <translation>Was von {name} gesendet wird</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/pages_dialog.py" />
      <source>Pages or parts by number</source>
      <translation>Seiten oder Teile nach Nummer</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/pages_dialog.py" />
      <source>Pages or parts</source>
      <translation>Seiten oder Teile</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/pages_dialog.py" />
      <source>Use these</source>
      <translation>Diese nehmen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/pages_dialog.py" />
      <source>Cancel</source>
      <translation>Abbrechen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/pages_dialog.py" />
      <source>Write numbers from 1 to {n_parts}, as 1-3, 7.</source>
      <translation>Schreibe Nummern von 1 bis {n_parts}, etwa 1-3, 7.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/pages_dialog.py" />
      <source>{n_chosen} of {n_parts}</source>
      <translation>{n_chosen} von {n_parts}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>lines</source>
      <translation>Zeilen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>a table</source>
      <translation>eine Tabelle</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>slides</source>
      <translation>Folien</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>an OpenDocument</source>
      <translation>ein OpenDocument</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>a program</source>
      <translation>ein Programm</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>a model: open it in the library</source>
      <translation>ein Modell: Öffne es in der Bibliothek</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>an RTF document: save it as PDF or as text</source>
      <translation>ein RTF-Dokument: Speichere es als PDF oder als Text</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>an old Office document: save it as PDF or docx</source>
      <translation>ein altes Office-Dokument: Speichere es als PDF oder docx</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>a database</source>
      <translation>eine Datenbank</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>packed: unpack it first</source>
      <translation>gepackt: Entpacke die Datei zuerst</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} is neither text nor a PDF, a docx or an image: a model could not read it.</source>
      <translation>{name} ist weder Text noch PDF, docx oder Bild: Ein Modell könnte es nicht lesen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>line {first}</source>
      <translation>Zeile {first}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} is empty.</source>
      <translation>{name} ist leer.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} has {n_letters:.1f} million characters of text. A file can have {MOST_LETTERS:.0f} million: attach a part of it.</source>
      <translation>{name} hat {n_letters:.1f} Millionen Zeichen Text. Eine Datei darf {MOST_LETTERS:.0f} Millionen haben: Hänge einen Teil davon an.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} is damaged, or is an image of a kind that is not known.</source>
      <translation>{name} ist beschädigt oder ein Bild unbekannter Art.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} holds no text: its pages are pictures. Attach a copy with recognised text.</source>
      <translation>{name} enthält keinen Text: Die Seiten sind Bilder. Hänge eine Kopie mit erkanntem Text an.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} holds no text.</source>
      <translation>{name} enthält keinen Text.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} is a folder: attach the files in it.</source>
      <translation>{name} ist ein Ordner: Hänge die Dateien darin an.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} is not there, or is not a file.</source>
      <translation>{name} gibt es nicht, oder es ist keine Datei.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} has {n_bytes:,.0f} MiB. A file can have {MOST_BYTES} MiB: attach a part.</source>
      <translation>{name} hat {n_bytes:,.0f} MiB. Eine Datei darf {MOST_BYTES} MiB haben: Hänge einen Teil an.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} cannot be read: you have no permission to open it.</source>
      <translation>{name} lässt sich nicht lesen: Du darfst die Datei nicht öffnen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} cannot be read: {value}.</source>
      <translation>{name} lässt sich nicht lesen: {value}.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>section</source>
      <translation>Abschnitt</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} is protected by a password: save a copy without one, and attach that.</source>
      <translation>{name} ist mit einem Passwort geschützt: Speichere eine Kopie ohne Passwort und hänge diese an.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} is encrypted in a way that cannot be read here: save a copy without that.</source>
      <translation>{name} ist auf eine Weise verschlüsselt, die hier nicht gelesen werden kann: Speichere eine Kopie ohne sie.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} is damaged: its pages cannot be read.</source>
      <translation>{name} ist beschädigt: Die Seiten lassen sich nicht lesen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} is damaged, or is protected by a password: it cannot be unpacked.</source>
      <translation>{name} ist beschädigt oder mit einem Passwort geschützt: Es lässt sich nicht entpacken.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} is {what}.</source>
      <translation>{name} ist {what}.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} is {what}, and no text.</source>
      <translation>{name} ist {what} und kein Text.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} has {width:,} x {height:,} pixels: make it smaller first.</source>
      <translation>{name} hat {width:,} x {height:,} Pixel: Verkleinere das Bild zuerst.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>an archive</source>
      <translation>ein Archiv</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>unpack it</source>
      <translation>Entpacke es</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>save it as PDF or as text</source>
      <translation>Speichere es als PDF oder als Text</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} is {what}, which cannot be read here: {ways}, and attach that.</source>
      <translation>{name} ist {what}, und das lässt sich hier nicht lesen: {ways}, und hänge das an.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} holds more than {MOST_BYTES} MiB of text: attach a part of it.</source>
      <translation>{name} enthält mehr als {MOST_BYTES} MiB Text: Hänge einen Teil davon an.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>{name} needs too much memory to be read: attach a smaller part of it.</source>
      <translation>{name} braucht zum Lesen zu viel Speicher: Hänge einen kleineren Teil an.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/read_file.py" />
      <source>page {number}</source>
      <translation>Seite {number}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/sent_files.py" />
      <source>What was sent of {name}</source>
      <translation>Was von {name} gesendet wurde</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/sent_files.py" />
      <source>The image {name}</source>
      <translation>Das Bild {name}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/sent_files.py" />
      <source>File {name}, {facts}</source>
      <translation>Datei {name}, {facts}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/sent_files.py" />
      <source>The model is not given it. Click to see it larger.</source>
      <translation>Das Modell bekommt es nicht. Ein Klick zeigt es größer.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/sent_files.py" />
      <source>{name}
{how_chosen} Click to see what the model was given.</source>
      <translation>{name}
{how_chosen} Klicke, um zu sehen, was das Modell bekommen hat.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/sent_files.py" />
      <source>{value}
… ({n_text:,} characters in all)</source>
      <translation>{value}
… (insgesamt {n_text:,} Zeichen)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/sent_files.py" />
      <source>This image cannot be shown.</source>
      <translation>Dieses Bild lässt sich nicht zeigen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/shelf.py" />
      <source>Dismiss</source>
      <translation>Schließen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/shelf.py" />
      <source>Pasted image.png</source>
      <translation>Eingefügtes Bild.png</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/shelf.py" />
      <source>Pasted text.txt</source>
      <translation>Eingefügter Text.txt</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/shelf.py" />
      <source>Choose a model that can…</source>
      <translation>Ein Modell wählen, das es kann…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/shelf.py" />
      <source>Choose another file…</source>
      <translation>Andere Datei wählen…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/shelf.py" />
      <source>A message takes {MOST} files at most: {name} was left out.</source>
      <translation>Eine Nachricht nimmt höchstens {MOST} Dateien: {name} wurde weggelassen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/attachments/shelf.py" />
      <source>What was pasted cannot be attached: {reason}.</source>
      <translation>Das Eingefügte lässt sich nicht anhängen: {reason}.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>No small model is paired with this one.</source>
      <translation>Mit diesem Modell ist kein kleines verbunden.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Enter sends  ·  Shift+Enter starts a new line</source>
      <translation>Eingabetaste sendet  ·  Umschalt+Eingabe beginnt eine neue Zeile</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>{name} cannot see images: remove them to send the message.</source>
      <translation>{name} kann keine Bilder sehen: Entferne sie, um die Nachricht zu senden.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Open this link in your browser?</source>
      <translation>Diesen Link im Browser öffnen?</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Show or hide the chats (Ctrl+B)</source>
      <translation>Chats zeigen oder verbergen (Strg+B)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Chat settings (Ctrl+.)</source>
      <translation>Einstellungen des Chats (Strg+.)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Show the other chat (F6)</source>
      <translation>Zum anderen Chat (F6)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Close the chat beside (Ctrl+Shift+W)</source>
      <translation>Den Chat daneben schließen (Strg+Umschalt+W)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Loading of the model</source>
      <translation>Laden des Modells</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Loading the model…</source>
      <translation>Das Modell wird geladen…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Starting the engine…</source>
      <translation>Die Engine startet…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Starting again…</source>
      <translation>Startet neu…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Open</source>
      <translation>Öffnen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Look for it on the Hub…</source>
      <translation>Auf dem Hub danach suchen…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Try again</source>
      <translation>Noch einmal versuchen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Choosing the passages that fit the question…  {share:.0%}</source>
      <translation>Wählt die Stellen, die zur Frage passen…  {share:.0%}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Spark cannot answer: {problem}</source>
      <translation>Spark kann nicht antworten: {problem}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Copy the address</source>
      <translation>Adresse kopieren</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>No program here opens {address}.</source>
      <translation>Kein Programm auf diesem Rechner öffnet {address}.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Shorten the message</source>
      <translation>Die Nachricht kürzen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/chat_page.py" />
      <source>Find one on the Hub…</source>
      <translation>Eines auf dem Hub finden…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/composer.py" />
      <source>Write a message</source>
      <translation>Nachricht schreiben</translation>
    </message>
    <message>
      <location filename="../../ui/chat/composer.py" />
      <source>Message</source>
      <translation>Nachricht</translation>
    </message>
    <message>
      <location filename="../../ui/chat/composer.py" />
      <source>Send</source>
      <translation>Senden</translation>
    </message>
    <message>
      <location filename="../../ui/chat/composer.py" />
      <source>Attach files (Ctrl+U)</source>
      <translation>Dateien anhängen (Strg+U)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/composer.py" />
      <source>Prompts (Ctrl+P)</source>
      <translation>Prompts (Strg+P)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/composer.py" />
      <source>Attach files</source>
      <translation>Dateien anhängen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/composer.py" />
      <source>Stop</source>
      <translation>Stopp</translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_bar.py" />
      <source>{n_used} of {n_ctx} tokens</source>
      <translation>{n_used} von {n_ctx} Token</translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_bar.py" />
      <source>About </source>
      <translation>Etwa </translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_bar.py" />
      <source>{about}{n_used:,} tokens of this chat, {n_draft:,} of the message being written, {n_free:,} free of {n_ctx:,}.</source>
      <translation>{about}{n_used:,} Token dieses Chats, {n_draft:,} der Nachricht in Arbeit, {n_free:,} von {n_ctx:,} frei.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_bar.py" />
      <source>Context: {words}</source>
      <translation>Kontext: {words}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_bar.py" />
      <source>It is nearly full: click for what makes room.</source>
      <translation>Er ist fast voll: Klicke, um zu sehen, was Platz schafft.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_bar.py" />
      <source>Click for what makes room.</source>
      <translation>Klicke, um zu sehen, was Platz schafft.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_fit.py" />
      <source>Load the model with</source>
      <translation>Das Modell laden mit</translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_fit.py" />
      <source>About {n_tokens:,} tokens with this message; the model's context holds {n_ctx:,}.</source>
      <translation>Mit dieser Nachricht etwa {n_tokens:,} Token; der Kontext des Modells fasst {n_ctx:,}.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_fit.py" />
      <source> Shorten it, or choose a model with a larger context.</source>
      <translation> Kürze sie, oder wähle ein Modell mit größerem Kontext.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_fit.py" />
      <source>The reply was cut: the model's context of {n_ctx:,} tokens is full.</source>
      <translation>Die Antwort wurde abgeschnitten: Der Kontext des Modells mit {n_ctx:,} Token ist voll.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_fit.py" />
      <source>There is room enough, and this model's context cannot be larger</source>
      <translation>Es ist Platz genug, und der Kontext dieses Modells kann nicht größer sein</translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_fit.py" />
      <source>{LARGER} {wanted:,} tokens of context</source>
      <translation>{LARGER} {wanted:,} Token Kontext</translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_fit.py" />
      <source>Choose another model</source>
      <translation>Anderes Modell wählen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_fit.py" />
      <source>Writing a summary of this chat…</source>
      <translation>Schreibt eine Zusammenfassung dieses Chats…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_fit.py" />
      <source>There is no summary: {problem}</source>
      <translation>Es gibt keine Zusammenfassung: {problem}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_fit.py" />
      <source>Choose what to send of {name}…</source>
      <translation>Auswählen, was von {name} gesendet wird…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_fit.py" />
      <source>Leave out earlier messages</source>
      <translation>Frühere Nachrichten weglassen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/context_fit.py" />
      <source>Start a new chat with a summary of this one</source>
      <translation>Einen neuen Chat mit einer Zusammenfassung von diesem beginnen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/conversation.py" />
      <source>New chat</source>
      <translation>Neuer Chat</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/chat_text.py" />
      <source>Chat</source>
      <translation>Chat</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/chat_text.py" />
      <source>Tool {words}</source>
      <translation>Werkzeug {words}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/chat_text.py" />
      <source>Instructions</source>
      <translation>Anweisungen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/chat_text.py" />
      <source>File</source>
      <translation>Datei</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/chat_text.py" />
      <source>Thoughts</source>
      <translation>Gedanken</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/chat_text.py" />
      <source>You</source>
      <translation>Du</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/chat_text.py" />
      <source>Reply</source>
      <translation>Antwort</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/chat_text.py" />
      <source>No text.</source>
      <translation>Kein Text.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/exchange.py" />
      <source>Reading {name}…</source>
      <translation>Liest {name}…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/exchange.py" />
      <source>Exporting…</source>
      <translation>Wird exportiert…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/exchange.py" />
      <source>Exporting…  {at:,} of {n_all:,}</source>
      <translation>Wird exportiert…  {at:,} von {n_all:,}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/exchange.py" />
      <source>the chats cannot be read</source>
      <translation>die Chats lassen sich nicht lesen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/exchange.py" />
      <source>{n:,} {words} written to {name}.</source>
      <translation>{n:,} {words} in {name} geschrieben.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/exchange.py" />
      <source>The import was stopped. What was imported until then is kept.</source>
      <translation>Der Import wurde angehalten. Was bis dahin importiert war, bleibt.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/exchange.py" />
      <source>The export was stopped.</source>
      <translation>Der Export wurde angehalten.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/exchange.py" />
      <source>it cannot be read</source>
      <translation>es lässt sich nicht lesen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/exchange.py" />
      <source>Importing…  {share:.0%}  ·  {n_all:,} {words}</source>
      <translation>Wird importiert…  {share:.0%}  ·  {n_all:,} {words}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/exchange.py" />
      <source>Nothing was written to {name}: {problem}.</source>
      <translation>In {name} wurde nichts geschrieben: {problem}.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/exchange.py" />
      <source>Not all chats could be saved: {reason} Import the file again when that is mended: what is here already does not come twice.</source>
      <translation>Nicht alle Chats konnten gespeichert werden: {reason} Importiere die Datei noch einmal, wenn das behoben ist: Was schon hier ist, kommt nicht doppelt.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/exchange.py" />
      <source>The rest of the file could not be read: it may be damaged.</source>
      <translation>Der Rest der Datei konnte nicht gelesen werden: Vielleicht ist sie beschädigt.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/exchange.py" />
      <source>The file could not be read: it may be damaged.</source>
      <translation>Die Datei ließ sich nicht lesen: Sie ist vielleicht beschädigt.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/exchange.py" />
      <source>chat</source>
      <translation>Chat</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/exchange.py" />
      <source>chats</source>
      <translation>Chats</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/gpt4all.py" />
      <source>This chat of GPT4All holds the model's memory: switch “Save chat context” off there first.</source>
      <translation>Dieser Chat von GPT4All enthält den Speicher des Modells: Schalte dort zuerst „Save chat context“ aus.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/gpt4all.py" />
      <source>This chat of GPT4All holds calls of tools, which cannot be read here.</source>
      <translation>Dieser Chat von GPT4All enthält Aufrufe von Werkzeugen, die hier nicht gelesen werden können.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/gpt4all.py" />
      <source>Another version of GPT4All kept this chat: open it in GPT4All 3.10, and close that.</source>
      <translation>Eine andere Version von GPT4All hat diesen Chat gespeichert: Öffne ihn in GPT4All 3.10 und schließe es wieder.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/gpt4all.py" />
      <source>This chat of GPT4All is damaged: it ends too soon.</source>
      <translation>Dieser Chat von GPT4All ist beschädigt: Er endet zu früh.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/other_programs.py" />
      <source>This is not a file of chats from Slipstream, ChatGPT, LM Studio, Open WebUI or GPT4All.</source>
      <translation>Das ist keine Datei mit Chats von Slipstream, ChatGPT, LM Studio, Open WebUI oder GPT4All.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/other_programs.py" />
      <source>This file of chats from Slipstream is damaged.</source>
      <translation>Diese Datei mit Chats aus Slipstream ist beschädigt.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/read_chats.py" />
      <source>Slipstream chats</source>
      <translation>Chats aus Slipstream</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/read_chats.py" />
      <source>{name} has chats in Markdown, which cannot be imported: export them as JSON for that.</source>
      <translation>{name} enthält Chats als Markdown, das sich nicht importieren lässt: Exportiere sie dafür als JSON.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/read_chats.py" />
      <source>{name} cannot be read: it is damaged, locked, or not there.</source>
      <translation>{name} lässt sich nicht lesen: Die Datei ist beschädigt, gesperrt oder nicht da.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/read_chats.py" />
      <source>{name} holds no chats.</source>
      <translation>{name} enthält keine Chats.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/read_chats.py" />
      <source>{name} holds no chats: an archive from ChatGPT has a conversations.json in it.</source>
      <translation>{name} enthält keine Chats: Ein Archiv von ChatGPT hat eine conversations.json darin.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/read_chats.py" />
      <source>{name} is larger than {MOST_BYTES} GiB: export fewer chats at once.</source>
      <translation>{name} ist größer als {MOST_BYTES} GiB: Exportiere weniger Chats auf einmal.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/read_chats.py" />
      <source>{name} cannot be read: it is neither whole JSON nor a chat of GPT4All.</source>
      <translation>{name} lässt sich nicht lesen: Es ist weder eine ganze JSON-Datei noch ein Chat von GPT4All.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/read_chats.py" />
      <source>The file needs more memory than there is: export fewer chats at once.</source>
      <translation>Die Datei braucht mehr Speicher, als da ist: Exportiere weniger Chats auf einmal.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/taking_in.py" />
      <source>damaged chat</source>
      <translation>beschädigter Chat</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/taking_in.py" />
      <source>damaged chats</source>
      <translation>beschädigte Chats</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/taking_in.py" />
      <source>damaged file</source>
      <translation>beschädigte Datei</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/taking_in.py" />
      <source>damaged files</source>
      <translation>beschädigte Dateien</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/taking_in.py" />
      <source>image or file</source>
      <translation>Bild oder Datei</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/taking_in.py" />
      <source>images or files</source>
      <translation>Bilder oder Dateien</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/taking_in.py" />
      <source>tool result or thought</source>
      <translation>Werkzeugergebnis oder Gedanke</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/taking_in.py" />
      <source>tool results or thoughts</source>
      <translation>Werkzeugergebnisse oder Gedanken</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/taking_in.py" />
      <source>source of a reply</source>
      <translation>Quelle einer Antwort</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/taking_in.py" />
      <source>sources of replies</source>
      <translation>Quellen von Antworten</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/taking_in.py" />
      <source>{chats} imported.</source>
      <translation>{chats} importiert.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/taking_in.py" />
      <source>In the archive: {n:,}.</source>
      <translation>Im Archiv: {n:,}.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/taking_in.py" />
      <source>{chats} without text left out.</source>
      <translation>{chats} ohne Text weggelassen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/taking_in.py" />
      <source>Left out: {names}.</source>
      <translation>Weggelassen: {names}.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/taking_in.py" />
      <source>1 chat was here already.</source>
      <translation>1 Chat war schon hier.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/exchange/taking_in.py" />
      <source>{n:,} chats were here already.</source>
      <translation>{n:,} Chats waren schon hier.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_delegate.py" />
      <source>Name of the folder</source>
      <translation>Name des Ordners</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_delegate.py" />
      <source>Title of the chat</source>
      <translation>Titel des Chats</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_model.py" />
      <source>folder, {words}, {n_chats} {chats}</source>
      <translation>Ordner, {words}, {n_chats} {chats}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_model.py" />
      <source>Today</source>
      <translation>Heute</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_model.py" />
      <source>Yesterday</source>
      <translation>Gestern</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_model.py" />
      <source>Previous 7 days</source>
      <translation>Letzte 7 Tage</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_model.py" />
      <source>Previous 30 days</source>
      <translation>Letzte 30 Tage</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_model.py" />
      <source>pinned</source>
      <translation>angeheftet</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_model.py" />
      <source>a reply comes in</source>
      <translation>eine Antwort kommt</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_model.py" />
      <source>open</source>
      <translation>offen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_model.py" />
      <source>closed</source>
      <translation>zu</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_model.py" />
      <source>Pinned</source>
      <translation>Angeheftet</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_model.py" />
      <source>Archived</source>
      <translation>Archiviert</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Chats of Slipstream, ChatGPT, LM Studio, Open WebUI, GPT4All (*.json *.zip *.chat);;All files (*)</source>
      <translation>Chats von Slipstream, ChatGPT, LM Studio, Open WebUI, GPT4All (*.json *.zip *.chat);;Alle Dateien (*)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Markdown, to read (*.md)</source>
      <translation>Markdown, zum Lesen (*.md)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>JSON, to import again (*.json)</source>
      <translation>JSON, zum Wiedereinlesen (*.json)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Markdown, a file for each chat (*.zip)</source>
      <translation>Markdown, eine Datei je Chat (*.zip)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>New chat (Ctrl+N)</source>
      <translation>Neuer Chat (Strg+N)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Search chats</source>
      <translation>Chats durchsuchen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Archive</source>
      <translation>Archiv</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Show the archive</source>
      <translation>Das Archiv zeigen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Chats that you have put away</source>
      <translation>Chats, die du weggelegt hast</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Import and export chats</source>
      <translation>Chats importieren und exportieren</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>The archive is empty.</source>
      <translation>Das Archiv ist leer.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Your chats will be listed here.</source>
      <translation>Hier stehen bald deine Chats.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Open beside	Ctrl+Enter</source>
      <translation>Daneben öffnen	Strg+Eingabe</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Rename	F2</source>
      <translation>Umbenennen	F2</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Export…</source>
      <translation>Exportieren…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Delete	Del</source>
      <translation>Löschen	Entf</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Import chats…</source>
      <translation>Chats importieren…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Export all chats…</source>
      <translation>Alle Chats exportieren…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Choose a file…</source>
      <translation>Datei wählen…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Choose another place…</source>
      <translation>Anderen Ort wählen…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Import chats</source>
      <translation>Chats importieren</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Export</source>
      <translation>Exportieren</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Move to folder</source>
      <translation>In Ordner verschieben</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>New folder…</source>
      <translation>Neuer Ordner…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Name</source>
      <translation>Name</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Chats</source>
      <translation>Chats</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Nothing found for “{words}”</source>
      <translation>Nichts gefunden zu „{words}“</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Back to all chats</source>
      <translation>Zurück zu allen Chats</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Rename folder	F2</source>
      <translation>Ordner umbenennen	F2</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Remove folder, keep its chats</source>
      <translation>Ordner entfernen, Chats behalten</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Unpin</source>
      <translation>Loslösen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Pin</source>
      <translation>Anheften</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Take out of the archive</source>
      <translation>Aus dem Archiv nehmen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Put into the archive</source>
      <translation>Ins Archiv legen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Bring chats back…</source>
      <translation>Chats zurückholen…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Open the chat</source>
      <translation>Den Chat öffnen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Open the first</source>
      <translation>Den ersten öffnen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>New folder</source>
      <translation>Neuer Ordner</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Out of its folder</source>
      <translation>Aus dem Ordner nehmen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Rename</source>
      <translation>Umbenennen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/history/history_panel.py" />
      <source>Create</source>
      <translation>Anlegen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/markdown/document_writer.py" />
      <source>mermaid  ·  a diagram as text: copy it into a Mermaid viewer to see it</source>
      <translation>mermaid  ·  ein Diagramm als Text: Kopiere es in einen Mermaid-Betrachter, um es zu sehen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/markdown/markdown_view.py" />
      <source>Copy</source>
      <translation>Kopieren</translation>
    </message>
    <message>
      <location filename="../../ui/chat/markdown/markdown_view.py" />
      <source>Copy this code</source>
      <translation>Diesen Code kopieren</translation>
    </message>
    <message>
      <location filename="../../ui/chat/markdown/markdown_view.py" />
      <source>Copied</source>
      <translation>Kopiert</translation>
    </message>
    <message>
      <location filename="../../ui/chat/markdown/markdown_view.py" />
      <source>{language}, 1 line of code</source>
      <translation>{language}, Programmtext, eine Zeile</translation>
    </message>
    <message>
      <location filename="../../ui/chat/markdown/markdown_view.py" />
      <source>{language}, {n} lines of code</source>
      <translation>{language}, Programmtext, Zeilen: {n}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/assistant_message.py" />
      <source>Make it fit…</source>
      <translation>Passend machen…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/assistant_message.py" />
      <source>The model said</source>
      <translation>Das Modell sagte</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/assistant_message.py" />
      <source>Answer again</source>
      <translation>Noch einmal antworten</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/assistant_message.py" />
      <source>Answer again (Ctrl+R)</source>
      <translation>Noch einmal antworten (Strg+R)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/assistant_message.py" />
      <source>Edit this reply, as another version</source>
      <translation>Diese Antwort als weitere Fassung bearbeiten</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/assistant_message.py" />
      <source>Continue this reply</source>
      <translation>Diese Antwort fortsetzen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/assistant_message.py" />
      <source>Continue this reply (Ctrl+Shift+R)</source>
      <translation>Diese Antwort fortsetzen (Strg+Umschalt+R)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/assistant_message.py" />
      <source>Redo with the full model</source>
      <translation>Mit dem ganzen Modell</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/assistant_message.py" />
      <source>first token {ttft}</source>
      <translation>erstes Token {ttft}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/assistant_message.py" />
      <source>Answered by the small model {name}, less capable.</source>
      <translation>Vom kleinen Modell {name} beantwortet, das weniger kann.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/assistant_message.py" />
      <source>Reply: {beginning}</source>
      <translation>Antwort: {beginning}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/assistant_message.py" />
      <source>Edit the reply</source>
      <translation>Die Antwort bearbeiten</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/assistant_message.py" />
      <source>Save</source>
      <translation>Speichern</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/assistant_message.py" />
      <source>Reading the prompt…  {wait:.1f} s</source>
      <translation>Liest den Prompt…  {wait:.1f} s</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/assistant_message.py" />
      <source>Stopped</source>
      <translation>Angehalten</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/deep_stages.py" />
      <source>Stage: {name}</source>
      <translation>Stufe: {name}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/message_view.py" />
      <source>Earlier version</source>
      <translation>Frühere Fassung</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/message_view.py" />
      <source>Later version</source>
      <translation>Spätere Fassung</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/message_view.py" />
      <source>Earlier version (Alt+Left)</source>
      <translation>Frühere Fassung (Alt+Links)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/message_view.py" />
      <source>Later version (Alt+Right)</source>
      <translation>Spätere Fassung (Alt+Rechts)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/message_view.py" />
      <source>Copy message</source>
      <translation>Nachricht kopieren</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/message_view.py" />
      <source>Version {number} of {n}</source>
      <translation>Fassung {number} von {n}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipt_view.py" />
      <source>This reply was written while it was off, so its drafted words are not known.</source>
      <translation>Diese Antwort entstand, als es aus war: Ihre vorausgeratenen Wörter sind nicht bekannt.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipt_view.py" />
      <source>Closed</source>
      <translation>Geschlossen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipt_view.py" />
      <source>How fast this reply was</source>
      <translation>Wie schnell diese Antwort war</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipt_view.py" />
      <source>Tint drafted words</source>
      <translation>Entwürfe färben</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipt_view.py" />
      <source>Race this prompt…</source>
      <translation>Wettlauf mit diesem Prompt…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipt_view.py" />
      <source>Answer it once plainly and once with drafts, or by another model, and compare the speeds</source>
      <translation>Einmal einfach und einmal mit Entwürfen oder von einem anderen Modell beantworten lassen und die Geschwindigkeit vergleichen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipt_view.py" />
      <source>What would help: {would_help}</source>
      <translation>Was helfen würde: {would_help}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipt_view.py" />
      <source>Where the time went</source>
      <translation>Wohin die Zeit ging</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipt_view.py" />
      <source>Receipt: {words}</source>
      <translation>Beleg: {words}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipt_view.py" />
      <source>How fast this reply was, and why</source>
      <translation>Wie schnell diese Antwort war, und warum</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>{tokens} at {decode_per_second}</source>
      <translation>{tokens} mit {decode_per_second}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>{prefill_tokens} read at {prefill_per_second}</source>
      <translation>{prefill_tokens} gelesen mit {prefill_per_second}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>{cached_tokens} from the cache</source>
      <translation>{cached_tokens} aus dem Cache</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Limited by computing, not by the speed of memory.</source>
      <translation>Begrenzt vom Rechnen, nicht vom Speichertempo.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Limited by work between steps: neither memory nor computing took most of the time.</source>
      <translation>Begrenzt von Arbeit zwischen Schritten: Weder der Speicher noch das Rechnen brauchten die meiste Zeit.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Memory gave {peak_share:.0%} of what it can: computing and the work between steps took the rest of the time.</source>
      <translation>Der Speicher gab {peak_share:.0%} von dem, was er kann: Das Rechnen und die Arbeit zwischen den Schritten brauchten die übrige Zeit.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>A smaller quantisation or model: each token then takes less work.</source>
      <translation>Eine kleinere Quantisierung oder ein kleineres Modell: Jedes Token macht dann weniger Arbeit.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>{speedup:.1f}× plain</source>
      <translation>{speedup:.1f}× einfach</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>{accepted_tokens} of {drafted_tokens} drafts accepted</source>
      <translation>{accepted_tokens} von {drafted_tokens} Entwürfen angenommen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>{speedup:.2f}× plain, measured</source>
      <translation>{speedup:.2f}× einfach, gemessen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>prompt {total}, {cached_tokens} cached</source>
      <translation>Prompt {total}, {cached_tokens} aus dem Cache</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>This is too long: the model cannot read all of it at once.</source>
      <translation>Das ist zu lang: Das Modell kann nicht alles auf einmal lesen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Written</source>
      <translation>Geschrieben</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>{accepted_tokens} of {drafted_tokens} accepted, {share:.0%}</source>
      <translation>{accepted_tokens} von {drafted_tokens} angenommen, {share:.0%}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>It was stopped, so there are only the figures that were seen here.</source>
      <translation>Die Antwort wurde angehalten: Es gibt nur die Zahlen, die hier zu sehen waren.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>It waited most of the time: other requests were running.</source>
      <translation>Sie wartete die meiste Zeit: Andere Anfragen liefen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Reading the prompt took most of the time: {tokens} were not in the cache.</source>
      <translation>Das Lesen des Prompts dauerte am längsten: {tokens} waren nicht im Cache.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Drafts were right often enough that each step wrote {each:.1f} tokens, and the model checked them all.</source>
      <translation>Die Entwürfe stimmten oft genug, dass jeder Schritt {each:.1f} Token schrieb, und das Modell hat sie alle geprüft.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Drafts let each step write {each:.1f} tokens. What that gained is not known yet.</source>
      <translation>Mit Entwürfen schrieb jeder Schritt {each:.1f} Token. Was das brachte, ist noch nicht bekannt.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Drafts did not make it faster.</source>
      <translation>Entwürfe machten es nicht schneller.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Each token was computed in a step of its own.</source>
      <translation>Jedes Token wurde in einem eigenen Schritt berechnet.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>What limited it is not known.</source>
      <translation>Was es begrenzte, ist nicht bekannt.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Limited by memory speed: each token reads the weights, at {peak_share:.0%} of the measured peak.</source>
      <translation>Begrenzt vom Speichertempo: Jedes Token liest die Gewichte, mit {peak_share:.0%} des gemessenen Höchstwerts.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Fewer requests at once, or Fast as the speed of this chat, which goes before others.</source>
      <translation>Weniger Anfragen zugleich, oder Schnell als Geschwindigkeit dieses Chats, die vor anderen geht.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>A shorter prompt, or one that begins like an earlier one: what is in the cache is not read again.</source>
      <translation>Ein kürzerer Prompt, oder einer, der wie ein früherer beginnt: Was im Cache ist, wird nicht noch einmal gelesen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>A draft model that is often right, which saves reads, or a smaller quantisation of this model.</source>
      <translation>Ein Entwurfsmodell, das oft richtig liegt und so Lesen spart, oder eine kleinere Quantisierung dieses Modells.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>A draft model that agrees more often with this one, or a lower temperature.</source>
      <translation>Ein Entwurfsmodell, das öfter mit diesem übereinstimmt, oder eine niedrigere Temperatur.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Fewer programs and requests at the same time. Then a smaller model: it has less to compute.</source>
      <translation>Weniger Programme und Anfragen zugleich. Dann ein kleineres Modell: Es hat weniger zu rechnen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Deep: answered directly</source>
      <translation>Gründlich: direkt beantwortet</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Deep: 1 draft</source>
      <translation>Gründlich: 1 Entwurf</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Deep: {drafts_used} drafts</source>
      <translation>Gründlich: {drafts_used} Entwürfe</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Edited by you</source>
      <translation>Von dir bearbeitet</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Reached the token limit</source>
      <translation>Token-Grenze</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Filled the context</source>
      <translation>Kontext ausgeschöpft</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>{accepted_tokens} of 1 draft accepted</source>
      <translation>{accepted_tokens} von 1 Entwurf angenommen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>too few plain steps yet</source>
      <translation>noch zu wenige einfache Schritte</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>, {peak_share:.0%} of the peak</source>
      <translation>, {peak_share:.0%} des Höchstwerts</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>prompt {prefill_tokens}</source>
      <translation>Prompt {prefill_tokens}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>first token {ttft_ms}</source>
      <translation>erstes Token {ttft_ms}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Waited</source>
      <translation>Gewartet</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Prompt</source>
      <translation>Prompt</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Total</source>
      <translation>Gesamt</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>{kv_type} cache</source>
      <translation>{kv_type}-Cache</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>First token</source>
      <translation>Erstes Token</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Drafts</source>
      <translation>Entwürfe</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Speed-up</source>
      <translation>Beschleunigung</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Memory</source>
      <translation>Speicher</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>{giga:,.1f} GB/s{peak}</source>
      <translation>{giga:,.1f} GB/s{peak}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>KV cache</source>
      <translation>KV-Cache</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Seed</source>
      <translation>Seed</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>{tokens} in {ms}</source>
      <translation>{tokens} in {ms}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/receipts.py" />
      <source>Answered directly</source>
      <translation>Direkt beantwortet</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/thoughts_view.py" />
      <source>Thinking…</source>
      <translation>Denkt nach…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/thoughts_view.py" />
      <source>Thought for {ms}</source>
      <translation>{ms} nachgedacht</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/thoughts_view.py" />
      <source>Shown</source>
      <translation>Gezeigt</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/thoughts_view.py" />
      <source>Folded</source>
      <translation>Eingeklappt</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/thoughts_view.py" />
      <source>Thinking…  {seconds:.0f} s</source>
      <translation>Denkt nach…  {seconds:.0f} s</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/transcript.py" />
      <source>Conversation</source>
      <translation>Gespräch</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/transcript.py" />
      <source>Go to the latest message</source>
      <translation>Zur neuesten Nachricht</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/user_message.py" />
      <source>You said</source>
      <translation>Du sagtest</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/user_message.py" />
      <source>Your message: {beginning}</source>
      <translation>Deine Nachricht: {beginning}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/user_message.py" />
      <source>Edit and send again</source>
      <translation>Bearbeiten und neu senden</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/user_message.py" />
      <source>Edit and send again (Ctrl+E)</source>
      <translation>Bearbeiten und neu senden (Strg+E)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/user_message.py" />
      <source>Edit your message</source>
      <translation>Deine Nachricht bearbeiten</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/user_message.py" />
      <source>Send again</source>
      <translation>Neu senden</translation>
    </message>
    <message>
      <location filename="../../ui/chat/messages/user_message.py" />
      <source>Show all {n_content:,} characters</source>
      <translation>Alle {n_content:,} Zeichen zeigen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>Ember is a tiny model that comes with Slipstream, a toy to try everything with.
It tells little stories and is wrong about most other things.</source>
      <translation>Ember ist ein winziges Modell, das mit Slipstream kommt, ein Spielzeug zum Ausprobieren.
Es erzählt kleine Geschichten (auf Englisch) und irrt sich bei fast allem anderen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>toy</source>
      <translation>Spielzeug</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>Cancel the loading of the model</source>
      <translation>Das Laden des Modells abbrechen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>Model</source>
      <translation>Modell</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>No model yet</source>
      <translation>Noch kein Modell</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>Runs on {remote}</source>
      <translation>Läuft auf {remote}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>{n_params} parameters</source>
      <translation>{n_params} Parameter</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>{n_ctx} tokens of context</source>
      <translation>{n_ctx} Token Kontext</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>Model: {name}</source>
      <translation>Modell: {name}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>Preparing {model}…</source>
      <translation>Bereitet {model} vor…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>Loading {model}…{percent}</source>
      <translation>Lädt {model}…{percent}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>No server</source>
      <translation>Kein Server</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>The engine stopped and is starting again…</source>
      <translation>Die Engine ist ausgefallen und startet neu…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>Not loaded</source>
      <translation>Nicht geladen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>{name}   (toy)</source>
      <translation>{name}   (Spielzeug)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>Settings of this model…</source>
      <translation>Einstellungen dieses Modells…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>Loads with the next message</source>
      <translation>Lädt mit der nächsten Nachricht</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>Not here any more</source>
      <translation>Nicht mehr hier</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>Unload this model</source>
      <translation>Dieses Modell entladen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>No models yet</source>
      <translation>Noch keine Modelle</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>Find more models…</source>
      <translation>Weitere Modelle finden…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/model_picker.py" />
      <source>the model</source>
      <translation>das Modell</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompt_form.py" />
      <source>Insert</source>
      <translation>Einfügen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompt_menu.py" />
      <source>Keep what is written…</source>
      <translation>Geschriebenes speichern…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompt_menu.py" />
      <source>All prompts…</source>
      <translation>Alle Prompts…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompt_menu.py" />
      <source>Write a prompt…</source>
      <translation>Einen Prompt schreiben…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompt_menu.py" />
      <source>No prompts yet</source>
      <translation>Noch keine Prompts</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompts_dialog.py" />
      <source>Only where I choose it</source>
      <translation>Nur wo ich es wähle</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompts_dialog.py" />
      <source>{{name}} is a variable: its value is asked for each time.</source>
      <translation>{{name}} ist eine Variable: Nach ihrem Wert wird jedes Mal gefragt.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompts_dialog.py" />
      <source>Text for a message</source>
      <translation>Text für eine Nachricht</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompts_dialog.py" />
      <source>Instructions for a chat</source>
      <translation>Anweisungen für einen Chat</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompts_dialog.py" />
      <source>Prompts</source>
      <translation>Prompts</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompts_dialog.py" />
      <source>New prompt</source>
      <translation>Neuer Prompt</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompts_dialog.py" />
      <source>Text of the prompt</source>
      <translation>Text des Prompts</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompts_dialog.py" />
      <source>Translate into {{language}}:</source>
      <translation>Übersetze auf {{language}}:</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompts_dialog.py" />
      <source>Undo</source>
      <translation>Rückgängig</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompts_dialog.py" />
      <source>Bring the deleted prompt back</source>
      <translation>Den gelöschten Prompt zurückholen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompts_dialog.py" />
      <source>Used as</source>
      <translation>Verwendet als</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompts_dialog.py" />
      <source>Used in new chats</source>
      <translation>Verwendet in neuen Chats</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompts_dialog.py" />
      <source>In every new chat with {model}</source>
      <translation>In jedem neuen Chat mit {model}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompts_dialog.py" />
      <source>Delete</source>
      <translation>Löschen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompts_dialog.py" />
      <source>Close</source>
      <translation>Schließen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/prompts/prompts_dialog.py" />
      <source>Asks for: {names}.</source>
      <translation>Fragt nach: {names}.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>Explain in a few paragraphs how a suspension bridge carries its load.</source>
      <translation>Erkläre in einigen Absätzen, wie eine Hängebrücke ihre Last trägt.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>Same prompt, same seed, and up to {MOST_TOKENS} tokens. What counts is how fast they write, as the engine measures it.</source>
      <translation>Gleicher Prompt, gleicher Seed, höchstens {MOST_TOKENS} Token. Es zählt, wie schnell geschrieben wird, von der Engine gemessen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>One after the other, so that neither takes the machine from the other. {MEASURED}</source>
      <translation>Nacheinander, damit keines dem anderen den Rechner wegnimmt. {MEASURED}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>At once: both share the machine, so this is not how fast each is alone. {MEASURED}</source>
      <translation>Zugleich: Beide teilen sich den Rechner; so schnell ist jedes allein also nicht. {MEASURED}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>They did not write at once: one had ended before the other began. {MEASURED}</source>
      <translation>Sie schrieben nicht zugleich: Eines war fertig, bevor das andere begann. {MEASURED}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>Only one of these models can be in memory at a time, so they take turns: each is measured alone. {MEASURED}</source>
      <translation>Nur eines dieser Modelle passt auf einmal in den Speicher, also sind sie nacheinander an der Reihe: jedes wird allein gemessen. {MEASURED}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>Getting ready…</source>
      <translation>Macht sich bereit…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>At once two different models can race. To compare one model's two ways, let them take turns.</source>
      <translation>Zugleich können zwei verschiedene Modelle antreten. Um zwei Wege eines Modells zu vergleichen, lass sie nacheinander laufen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>Something else used this machine meanwhile: drafts alone cannot make such a difference. Race again when it is quiet. {MEASURED}</source>
      <translation>Etwas anderes hat diese Maschine zugleich benutzt: Entwürfe allein können so viel nicht ausmachen. Lass das Rennen noch einmal laufen, wenn sonst nichts läuft. {MEASURED}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>Other replies were written meanwhile, which alone may have made the difference. Race again when they have ended. {MEASURED}</source>
      <translation>Inzwischen wurden auch andere Antworten geschrieben, und allein daran kann der Unterschied liegen. Lass das Rennen noch einmal laufen, wenn sie fertig sind. {MEASURED}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>Nothing was drafted, so both ways were the same, and a difference is chance. {MEASURED}</source>
      <translation>Es gab keine Entwürfe, also waren beide Wege gleich, und ein Unterschied ist Zufall. {MEASURED}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>{first:.2f}× as fast</source>
      <translation>{first:.2f}× so schnell</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>{AT_ONCE} They wrote together for {shared:.2f} of {whole:.2f} seconds.</source>
      <translation>{AT_ONCE} Sie schrieben {shared:.2f} von {whole:.2f} Sekunden gemeinsam.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>others were answered for {share:.0%} of the time</source>
      <translation>{share:.0%} der Zeit wurde auch anderen geantwortet</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>drafts: {accepted}</source>
      <translation>Entwürfe: {accepted}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>no drafts</source>
      <translation>keine Entwürfe</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>As fast as the other</source>
      <translation>So schnell wie das andere</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>Race</source>
      <translation>Wettlauf</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>Prompt of the race</source>
      <translation>Prompt des Wettlaufs</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>In turns or at once</source>
      <translation>Nacheinander oder zugleich</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>Start</source>
      <translation>Start</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>Save the picture</source>
      <translation>Das Bild speichern</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>Pictures (*.png)</source>
      <translation>Bilder (*.png)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>Who races</source>
      <translation>Wer antritt</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>with drafts</source>
      <translation>mit Entwürfen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>plain</source>
      <translation>ohne Entwürfe</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>In turns</source>
      <translation>Nacheinander</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>At once</source>
      <translation>Zugleich</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>Two models are needed to race at once</source>
      <translation>Für einen Wettlauf zugleich braucht es zwei Modelle</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>Copy picture</source>
      <translation>Bild kopieren</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>Save picture…</source>
      <translation>Bild speichern…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>{model} did not get to the end: {problem}</source>
      <translation>{model} kam nicht ans Ziel: {problem}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>{model} did not answer: {problem}</source>
      <translation>{model} hat nicht geantwortet: {problem}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>Saved</source>
      <translation>Gespeichert</translation>
    </message>
    <message>
      <location filename="../../ui/chat/race.py" />
      <source>The picture cannot be saved as {path}: choose another folder.</source>
      <translation>Das Bild lässt sich nicht als {path} speichern: Wähle einen anderen Ordner.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/server_notice.py" />
      <source>The loading of {name} was cancelled, so no model is loaded.</source>
      <translation>Das Laden von {name} wurde abgebrochen: Kein Modell ist geladen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/server_notice.py" />
      <source>Load {name}</source>
      <translation>{name} laden</translation>
    </message>
    <message>
      <location filename="../../ui/chat/server_notice.py" />
      <source>Load it</source>
      <translation>Laden</translation>
    </message>
    <message>
      <location filename="../../ui/chat/server_notice.py" />
      <source>Use the usual context</source>
      <translation>Üblichen Kontext nehmen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/server_notice.py" />
      <source>The model could not be loaded.</source>
      <translation>Das Modell konnte nicht geladen werden.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/server_notice.py" />
      <source>Load it again</source>
      <translation>Noch einmal laden</translation>
    </message>
    <message>
      <location filename="../../ui/chat/speed_picker.py" />
      <source>Speed: {name}</source>
      <translation>Geschwindigkeit: {name}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/speed_picker.py" />
      <source>Speed: {line}</source>
      <translation>Geschwindigkeit: {line}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/speed_picker.py" />
      <source>{name}, chosen</source>
      <translation>{name}, gewählt</translation>
    </message>
    <message>
      <location filename="../../ui/chat/storage/chat_archive.py" />
      <source>Chats now live in memory only and are gone when you close the window.</source>
      <translation>Chats leben jetzt nur im Speicher und sind weg, wenn du das Fenster schließt.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/storage/chat_archive.py" />
      <source>the folder cannot be written to.</source>
      <translation>In den Ordner lässt sich nicht schreiben.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/storage/chat_archive.py" />
      <source>the disk is full.</source>
      <translation>Der Datenträger ist voll.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/storage/chat_archive.py" />
      <source>the file cannot be opened or the folder cannot be written to.</source>
      <translation>Die Datei lässt sich nicht öffnen, oder in den Ordner lässt sich nicht schreiben.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/storage/chat_archive.py" />
      <source>another program holds the file.</source>
      <translation>Ein anderes Programm hält die Datei.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/storage/chat_archive.py" />
      <source>the file is damaged. Start Slipstream again: where it finds the damage, it offers to bring back the chats.</source>
      <translation>Die Datei ist beschädigt. Starte Slipstream neu: Findet es den Schaden, bietet es an, die Chats zurückzuholen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/storage/chat_archive.py" />
      <source>Chats cannot be saved in {parent}: {reason}</source>
      <translation>Chats lassen sich in {parent} nicht speichern: {reason}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/storage/chat_archive.py" />
      <source>Chats cannot be saved in {parent} right now: {reason} Trying again every few seconds.</source>
      <translation>Chats lassen sich gerade nicht in {parent} speichern: {reason} Alle paar Sekunden ein neuer Versuch.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/storage/chat_archive.py" />
      <source>The file with your chats was damaged. It is kept as {kept}; a new one was started.</source>
      <translation>Die Datei mit deinen Chats war beschädigt. Sie bleibt als {kept} erhalten; eine neue wurde begonnen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/storage/chat_archive.py" />
      <source>The chats could not be read: {reason}</source>
      <translation>Die Chats konnten nicht gelesen werden: {reason}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/storage/chat_archive.py" />
      <source>The chats in {path} were written by a newer Slipstream: update it. {MEMORY_ONLY}</source>
      <translation>Die Chats in {path} hat ein neueres Slipstream geschrieben: Aktualisiere es. {MEMORY_ONLY}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/storage/chat_archive.py" />
      <source>Chats cannot be saved in {parent}: {reason} {MEMORY_ONLY}</source>
      <translation>Chats lassen sich in {parent} nicht speichern: {reason} {MEMORY_ONLY}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/storage/chat_archive.py" />
      <source>The chats in {path} are damaged and could not be set aside: {error}. {MEMORY_ONLY}</source>
      <translation>Die Chats in {path} sind beschädigt und ließen sich nicht beiseitelegen: {error}. {MEMORY_ONLY}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/storage/chat_archive.py" />
      <source>Something could not be saved ({error}).</source>
      <translation>Etwas konnte nicht gespeichert werden ({error}).</translation>
    </message>
    <message>
      <location filename="../../ui/chat/summary.py" />
      <source>The model wrote no summary.</source>
      <translation>Das Modell hat keine Zusammenfassung geschrieben.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/calls_view.py" />
      <source>waits for you</source>
      <translation>wartet auf dich</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/calls_view.py" />
      <source>is called…</source>
      <translation>wird aufgerufen…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/calls_view.py" />
      <source>called</source>
      <translation>aufgerufen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/calls_view.py" />
      <source>failed</source>
      <translation>fehlgeschlagen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/calls_view.py" />
      <source>not called</source>
      <translation>nicht aufgerufen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/calls_view.py" />
      <source>{words}… ({n_words:,} characters)</source>
      <translation>{words}… ({n_words:,} Zeichen)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/calls_view.py" />
      <source>Show what was asked and what came back</source>
      <translation>Zeigen, was gefragt wurde und was zurückkam</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/calls_view.py" />
      <source>The call and its result</source>
      <translation>Der Aufruf und sein Ergebnis</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/calls_view.py" />
      <source>Call this tool from now on without asking</source>
      <translation>Dieses Werkzeug von nun an ohne Frage aufrufen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/calls_view.py" />
      <source>The model wants to call {name} of {server} with
{short}</source>
      <translation>Das Modell möchte {name} von {server} aufrufen mit
{short}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/calls_view.py" />
      <source>Allow once</source>
      <translation>Einmal erlauben</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/calls_view.py" />
      <source>Always allow</source>
      <translation>Immer erlauben</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/calls_view.py" />
      <source>Refuse</source>
      <translation>Ablehnen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/calls_view.py" />
      <source>{name} of {server}</source>
      <translation>{name} von {server}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tool_box.py" />
      <source>The program that speaks to tools has ended. Try again.</source>
      <translation>Das Programm, das mit Werkzeugen spricht, hat aufgehört. Versuche es noch einmal.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tool_box.py" />
      <source>{model} cannot call tools: its chat template has no place for them.</source>
      <translation>{model} kann keine Werkzeuge aufrufen: Seine Chat-Vorlage hat keinen Platz dafür.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tool_box.py" />
      <source>Each line needs a name and a value, as {example}.</source>
      <translation>Jede Zeile braucht einen Namen und einen Wert, etwa {example}.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tool_host.py" />
      <source>[{name} is shown to the user]</source>
      <translation>[{name} wird dem Nutzer gezeigt]</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tool_host.py" />
      <source>It cannot be used: {problem}.</source>
      <translation>Er lässt sich nicht verwenden: {problem}.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tool_host.py" />
      <source>{value}
… (cut: {n_text:,} characters)</source>
      <translation>{value}
… (gekürzt: {n_text:,} Zeichen)</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tool_host.py" />
      <source>It did not answer within {CONNECT_SECONDS:.0f} seconds.</source>
      <translation>Er hat in {CONNECT_SECONDS:.0f} Sekunden nicht geantwortet.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tool_host.py" />
      <source>There is no program {split!r} on this machine: check the command, or install it.</source>
      <translation>Auf diesem Rechner gibt es kein Programm {split!r}: Prüfe den Befehl, oder installiere es.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tool_host.py" />
      <source>{name} is damaged.</source>
      <translation>{name} ist beschädigt.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tool_host.py" />
      <source>it is not connected</source>
      <translation>er ist nicht verbunden</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tool_host.py" />
      <source>Image {number}</source>
      <translation>Bild {number}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tool_host.py" />
      <source>The tool did not answer within {CALL_SECONDS:.0f} seconds.</source>
      <translation>Das Werkzeug hat in {CALL_SECONDS:.0f} Sekunden nicht geantwortet.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tool_host.py" />
      <source>The tool could not be called: {problem}.</source>
      <translation>Das Werkzeug ließ sich nicht aufrufen: {problem}.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tool_host.py" />
      <source>The server ended: {problem}.</source>
      <translation>Der Server hat aufgehört: {problem}.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>One on a line: TOKEN=abc for a command, Authorization: Bearer abc for an address</source>
      <translation>Eines je Zeile: TOKEN=abc für einen Befehl, Authorization: Bearer abc für eine Adresse</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>MCP servers give models tools: files, calendars, searches. A command runs as a program of yours: add only what you trust. Each call is asked for unless you allow its tool.</source>
      <translation>MCP-Server geben Modellen Werkzeuge: Dateien, Kalender, Suchen. Ein Befehl läuft als dein Programm: Füge nur hinzu, wem du vertraust. Jeder Aufruf wird erfragt, wenn du das Werkzeug nicht erlaubst.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>Tools</source>
      <translation>Werkzeuge</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>None yet: add one below, by its command or its address.</source>
      <translation>Noch keine: Füge unten einen hinzu, mit seinem Befehl oder seiner Adresse.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>Name of the server</source>
      <translation>Name des Servers</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>uvx mcp-server-time, or http://…/mcp</source>
      <translation>uvx mcp-server-time oder http://…/mcp</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>Command or address</source>
      <translation>Befehl oder Adresse</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>Environment or headers</source>
      <translation>Umgebung oder Kopfzeilen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>Environment or headers…</source>
      <translation>Umgebung oder Kopfzeilen…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>Keys and other values that the server needs</source>
      <translation>Schlüssel und andere Werte, die der Server braucht</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>A server needs a name and a command or an address.</source>
      <translation>Ein Server braucht einen Namen und einen Befehl oder eine Adresse.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>There is a server called {name}: choose another name.</source>
      <translation>Es gibt schon einen Server namens {name}: Wähle einen anderen Namen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>A quotation mark in the command is not closed.</source>
      <translation>Ein Anführungszeichen im Befehl ist nicht geschlossen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>Offer its tools to models</source>
      <translation>Seine Werkzeuge den Modellen anbieten</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>Try {name} again</source>
      <translation>{name} noch einmal versuchen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>Ask again</source>
      <translation>Noch einmal fragen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>Ask again before {name} is called</source>
      <translation>Wieder fragen, bevor {name} aufgerufen wird</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>Take back what you have allowed for good</source>
      <translation>Zurücknehmen, was du dauerhaft erlaubt hast</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>Remove</source>
      <translation>Entfernen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>Off.</source>
      <translation>Aus.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>It is connected, and offers no tools.</source>
      <translation>Er ist verbunden, bietet aber keine Werkzeuge an.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>Add</source>
      <translation>Hinzufügen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>{at}  ·  with {names}</source>
      <translation>{at}  ·  mit {names}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>Connecting…</source>
      <translation>Verbindet…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tools/tools_dialog.py" />
      <source>Tools: {names}.</source>
      <translation>Werkzeuge: {names}.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Auto</source>
      <translation>Auto</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Temperature</source>
      <translation>Temperatur</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>0 always takes the most likely token; higher is more varied.</source>
      <translation>0 nimmt stets das wahrscheinlichste Token; höher wird vielfältiger.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Top K</source>
      <translation>Top K</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Only the K most likely tokens are considered; 0 considers all.</source>
      <translation>Nur die K wahrscheinlichsten Token kommen in Frage; 0 lässt alle zu.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Top P</source>
      <translation>Top P</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Only the most likely tokens that together reach this probability.</source>
      <translation>Nur die wahrscheinlichsten Token, die zusammen diese Wahrscheinlichkeit erreichen.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Min P</source>
      <translation>Min P</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Only tokens at least this likely, measured against the most likely one.</source>
      <translation>Nur Token, die gemessen am wahrscheinlichsten mindestens so wahrscheinlich sind.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Repeat penalty</source>
      <translation>Wiederholungsstrafe</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Above 1 makes recent tokens less likely; 1 is off.</source>
      <translation>Über 1 werden jüngste Token unwahrscheinlicher; 1 ist aus.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Close the panel</source>
      <translation>Das Feld schließen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Kept instructions…</source>
      <translation>Gespeicherte Anweisungen…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Kept instructions</source>
      <translation>Gespeicherte Anweisungen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Take instructions that you have kept, or keep these</source>
      <translation>Gespeicherte Anweisungen nehmen oder diese speichern</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>MCP servers…</source>
      <translation>MCP-Server…</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>MCP servers</source>
      <translation>MCP-Server</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Programs that give models tools, in all chats</source>
      <translation>Programme, die Modellen Werkzeuge geben, in allen Chats</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>How should the model behave?</source>
      <translation>Wie soll sich das Modell verhalten?</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>System prompt</source>
      <translation>System-Prompt</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Max tokens</source>
      <translation>Token höchstens</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>No limit</source>
      <translation>Keine Grenze</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>The reply ends after this many tokens.</source>
      <translation>Die Antwort endet nach so vielen Token.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Random</source>
      <translation>Zufällig</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>The same seed, prompt and settings give the same reply.</source>
      <translation>Gleicher Seed, Prompt und gleiche Einstellungen geben die gleiche Antwort.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Reset to defaults</source>
      <translation>Auf Vorgaben zurücksetzen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Chat settings</source>
      <translation>Chat-Einstellungen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>{unset}: as is set for the model, else {usual}.</source>
      <translation>{unset}: wie beim Modell eingestellt, sonst {usual}.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>{label} slider</source>
      <translation>Regler für {label}</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Model of this chat</source>
      <translation>Modell dieses Chats</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Speed of this chat</source>
      <translation>Geschwindigkeit dieses Chats</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Model and speed</source>
      <translation>Modell und Geschwindigkeit</translation>
    </message>
    <message>
      <location filename="../../ui/chat/tuning_panel.py" />
      <source>Sampling</source>
      <translation>Sampling</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>&lt;p style='line-height: 140%'&gt;You are talking to &lt;b&gt;Ember&lt;/b&gt;, a tiny model that comes with Slipstream so that you can try everything at once. It is a toy: good for little stories, wrong about most other things.&lt;/p&gt;</source>
      <translation>&lt;p style='line-height: 140%'&gt;Du sprichst mit &lt;b&gt;Ember&lt;/b&gt;, einem winzigen Modell, das mit Slipstream kommt, damit du alles gleich ausprobieren kannst. Es ist ein Spielzeug: gut für kleine Geschichten auf Englisch, im Irrtum bei fast allem anderen.&lt;/p&gt;</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>Everything you write stays on this computer.</source>
      <translation>Alles, was du schreibst, bleibt auf diesem Computer.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>Tell me a story about a fox.</source>
      <translation>Tell me a story about a fox.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>A short story</source>
      <translation>Eine kurze Geschichte</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>What is a token?</source>
      <translation>What is a token?</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>A question it knows</source>
      <translation>Eine Frage, die es kennt</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>List the planets.</source>
      <translation>List the planets.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>A list</source>
      <translation>Eine Liste</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>Write a Python function that reverses a string.</source>
      <translation>Write a Python function that reverses a string.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>Some code</source>
      <translation>Etwas Code</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>Explain in three sentences how you work.</source>
      <translation>Erkläre in drei Sätzen, wie du arbeitest.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>Explain</source>
      <translation>Erklären</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>Write a Python script that finds duplicate files.</source>
      <translation>Schreibe ein Python-Skript, das doppelte Dateien findet.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>Code</source>
      <translation>Code</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>Summarise a text that I paste next.</source>
      <translation>Fasse einen Text zusammen, den ich gleich einfüge.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>Summarise</source>
      <translation>Zusammenfassen</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>Draft a friendly reply that declines an invitation.</source>
      <translation>Entwirf eine freundliche Antwort, die eine Einladung ablehnt.</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>Write</source>
      <translation>Schreiben</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>What shall we try?</source>
      <translation>Was probieren wir aus?</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>Which models suit this machine?</source>
      <translation>Welche Modelle passen zu diesem Rechner?</translation>
    </message>
    <message>
      <location filename="../../ui/chat/welcome.py" />
      <source>Try: {prompt}</source>
      <translation>Ausprobieren: {prompt}</translation>
    </message>
    <message>
      <location filename="../../ui/client/api.py" />
      <source>The window is closing.</source>
      <translation>Das Fenster wird geschlossen.</translation>
    </message>
    <message>
      <location filename="../../ui/client/api.py" />
      <source>{name} cannot be read: {problem}.</source>
      <translation>{name} lässt sich nicht lesen: {problem}.</translation>
    </message>
    <message>
      <location filename="../../ui/client/api.py" />
      <source>The server is not running yet.</source>
      <translation>Der Server läuft noch nicht.</translation>
    </message>
    <message>
      <location filename="../../ui/client/api.py" />
      <source>{to} cannot be written: {problem}. Choose another place.</source>
      <translation>{to} lässt sich nicht schreiben: {problem}. Wähle einen anderen Ort.</translation>
    </message>
    <message>
      <location filename="../../ui/client/api.py" />
      <source>The server sent other vectors than those that were asked for.</source>
      <translation>Der Server hat andere Vektoren gesendet als die gewünschten.</translation>
    </message>
    <message>
      <location filename="../../ui/client/api.py" />
      <source>The server sent something that is not JSON.</source>
      <translation>Der Server hat etwas gesendet, das kein JSON ist.</translation>
    </message>
    <message>
      <location filename="../../ui/client/library_link.py" />
      <source>The library stopped in the middle of this and is starting again. Try again.</source>
      <translation>Die Bibliothek hat mittendrin angehalten und startet neu. Versuche es noch einmal.</translation>
    </message>
    <message>
      <location filename="../../ui/client/library_link.py" />
      <source>The library answered something that cannot be understood. Start Slipstream again.</source>
      <translation>Die Bibliothek hat etwas Unverständliches geantwortet. Starte Slipstream neu.</translation>
    </message>
    <message>
      <location filename="../../ui/client/private_server.py" />
      <source>it ended without a word</source>
      <translation>er endete wortlos</translation>
    </message>
    <message>
      <location filename="../../ui/client/private_server.py" />
      <source>exit code {code}</source>
      <translation>Exit-Code {code}</translation>
    </message>
    <message>
      <location filename="../../ui/client/problems.py" />
      <source>The server is not answering: it may have stopped.</source>
      <translation>Der Server antwortet nicht: Er hat vielleicht angehalten.</translation>
    </message>
    <message>
      <location filename="../../ui/client/problems.py" />
      <source>The server was stopped before the answer was whole.</source>
      <translation>Der Server wurde beendet, bevor die Antwort vollständig war.</translation>
    </message>
    <message>
      <location filename="../../ui/client/problems.py" />
      <source>Too many requests wait already. Try again in a moment.</source>
      <translation>Es warten schon zu viele Anfragen. Versuche es gleich noch einmal.</translation>
    </message>
    <message>
      <location filename="../../ui/client/problems.py" />
      <source>The request was cancelled.</source>
      <translation>Die Anfrage wurde abgebrochen.</translation>
    </message>
    <message>
      <location filename="../../ui/client/problems.py" />
      <source>This model is not here any more.</source>
      <translation>Dieses Modell ist nicht mehr da.</translation>
    </message>
    <message>
      <location filename="../../ui/client/problems.py" />
      <source>The messages have at least {n_prompt:,} tokens, and the context of the model has room for {n_ctx:,}.</source>
      <translation>Die Nachrichten haben mindestens {n_prompt:,} Token, und der Kontext des Modells hat Platz für {n_ctx:,}.</translation>
    </message>
    <message>
      <location filename="../../ui/client/problems.py" />
      <source>The server closed the connection before it answered.</source>
      <translation>Der Server hat die Verbindung geschlossen, bevor er geantwortet hat.</translation>
    </message>
    <message>
      <location filename="../../ui/client/problems.py" />
      <source>The server did not answer in time.</source>
      <translation>Der Server hat nicht rechtzeitig geantwortet.</translation>
    </message>
    <message>
      <location filename="../../ui/client/problems.py" />
      <source>The server answered with HTTP status {status}.</source>
      <translation>Der Server hat mit dem HTTP-Status {status} geantwortet.</translation>
    </message>
    <message>
      <location filename="../../ui/client/problems.py" />
      <source>The server cannot be reached: {problem}.</source>
      <translation>Der Server ist nicht erreichbar: {problem}.</translation>
    </message>
    <message>
      <location filename="../../ui/client/remedies.py" />
      <source>The models of this machine and the suggested ones are there without it.</source>
      <translation>Die Modelle dieses Rechners und die vorgeschlagenen sind auch ohne ihn da.</translation>
    </message>
    <message>
      <location filename="../../ui/client/remedies.py" />
      <source>“Hub settings…”, “Log in” logs in.</source>
      <translation>Zum Anmelden: „Hub-Einstellungen…“, „Anmelden“.</translation>
    </message>
    <message>
      <location filename="../../ui/client/remedies.py" />
      <source>A search finds names.</source>
      <translation>Eine Suche findet Namen.</translation>
    </message>
    <message>
      <location filename="../../ui/client/remedies.py" />
      <source>“Import folder…” does that.</source>
      <translation>Das geht mit „Ordner importieren…“.</translation>
    </message>
    <message>
      <location filename="../../ui/client/remedies.py" />
      <source>Empty the trash and try again, or delete the file in its folder.</source>
      <translation>Leere den Papierkorb und versuche es noch einmal, oder lösche die Datei in ihrem Ordner.</translation>
    </message>
    <message>
      <location filename="../../ui/client/remedies.py" />
      <source>Find it again to see what there is.</source>
      <translation>Öffne es noch einmal, um zu sehen, was es gibt.</translation>
    </message>
    <message>
      <location filename="../../ui/client/reply_stream.py" />
      <source>The server sent something unexpected.</source>
      <translation>Der Server hat etwas Unerwartetes gesendet.</translation>
    </message>
    <message>
      <location filename="../../ui/client/reply_stream.py" />
      <source>The server reported an error without saying which.</source>
      <translation>Der Server hat einen Fehler gemeldet, ohne zu sagen, welchen.</translation>
    </message>
    <message>
      <location filename="../../ui/client/reply_stream.py" />
      <source>The connection to the server broke in the middle of the reply.</source>
      <translation>Die Verbindung zum Server brach mitten in der Antwort ab.</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>Drafting</source>
      <translation>Entwürfe</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>Distilling</source>
      <translation>Verdichten</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>Writing the answer</source>
      <translation>Schreibt die Antwort</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>As set for the model in the library; Standard if nothing is set.</source>
      <translation>Wie für das Modell in der Bibliothek eingestellt; sonst Standard.</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>Standard</source>
      <translation>Standard</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>Shares the machine with whatever else runs.</source>
      <translation>Teilt den Rechner mit allem, was sonst läuft.</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>Fast</source>
      <translation>Schnell</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>The same model and quality, ahead of everything else that runs.</source>
      <translation>Gleiches Modell, gleiche Güte, vor allem anderen, was läuft.</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>Spark</source>
      <translation>Spark</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>The small partner model answers alone: much faster, less capable.</source>
      <translation>Das kleine Partnermodell antwortet allein: viel schneller, kann weniger.</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>Deep</source>
      <translation>Gründlich</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>Several drafts at once, distilled into one answer. For hard questions.</source>
      <translation>Mehrere Entwürfe zugleich, zu einer Antwort verdichtet. Für schwere Fragen.</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>Batch</source>
      <translation>Stapel</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>Uses what the others leave, and may wait.</source>
      <translation>Nimmt, was die anderen übrig lassen, und darf warten.</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>{seconds:.1f} s</source>
      <translation>{seconds:.1f} s</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>1 token</source>
      <translation>1 Token</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>{number} tokens</source>
      <translation>{number} Token</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>Answered directly: {reason}</source>
      <translation>Direkt beantwortet: {reason}</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>{drafts_done} of {drafts} drafts done</source>
      <translation>{drafts_done} von {drafts} Entwürfen fertig</translation>
    </message>
    <message>
      <location filename="../../ui/client/speeds.py" />
      <source>{tokens} of thought</source>
      <translation>{tokens} Gedanken</translation>
    </message>
    <message>
      <location filename="../../ui/commands/command_palette.py" />
      <source>Search commands, chats, models and settings</source>
      <translation>Befehle, Chats, Modelle und Einstellungen durchsuchen</translation>
    </message>
    <message>
      <location filename="../../ui/commands/command_palette.py" />
      <source>Found</source>
      <translation>Gefunden</translation>
    </message>
    <message>
      <location filename="../../ui/commands/command_palette.py" />
      <source>Nothing like that</source>
      <translation>Nichts dergleichen</translation>
    </message>
    <message>
      <location filename="../../ui/commands/command_palette.py" />
      <source>Ctrl+Enter opens it beside this chat</source>
      <translation>Strg+Eingabe öffnet ihn neben diesem Chat</translation>
    </message>
    <message>
      <location filename="../../ui/commands/shortcuts_dialog.py" />
      <source>Pages</source>
      <translation>Seiten</translation>
    </message>
    <message>
      <location filename="../../ui/commands/shortcuts_dialog.py" />
      <source>Window</source>
      <translation>Fenster</translation>
    </message>
    <message>
      <location filename="../../ui/commands/shortcuts_dialog.py" />
      <source>Keyboard shortcuts</source>
      <translation>Tastenkürzel</translation>
    </message>
    <message>
      <location filename="../../ui/commands/shortcuts_dialog.py" />
      <source>Send the message</source>
      <translation>Die Nachricht senden</translation>
    </message>
    <message>
      <location filename="../../ui/commands/shortcuts_dialog.py" />
      <source>Start a new line</source>
      <translation>Eine neue Zeile beginnen</translation>
    </message>
    <message>
      <location filename="../../ui/commands/shortcuts_dialog.py" />
      <source>Stop the reply</source>
      <translation>Die Antwort anhalten</translation>
    </message>
    <message>
      <location filename="../../ui/commands/shortcuts_dialog.py" />
      <source>Scroll the chat</source>
      <translation>Im Chat blättern</translation>
    </message>
    <message>
      <location filename="../../ui/commands/shortcuts_dialog.py" />
      <source>Rename a chat of the list</source>
      <translation>Einen Chat der Liste umbenennen</translation>
    </message>
    <message>
      <location filename="../../ui/commands/shortcuts_dialog.py" />
      <source>Delete a chat of the list</source>
      <translation>Einen Chat der Liste löschen</translation>
    </message>
    <message>
      <location filename="../../ui/commands/shortcuts_dialog.py" />
      <source>Views of the library and the server</source>
      <translation>Ansichten der Bibliothek und des Servers</translation>
    </message>
    <message>
      <location filename="../../ui/commands/shortcuts_dialog.py" />
      <source>Next control, or the one before</source>
      <translation>Nächstes Bedienelement oder das davor</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>This model is so small that the processor's cache holds it, so memory hardly matters.</source>
      <translation>Dieses Modell ist so klein, dass der Cache des Prozessors es fasst; der Speicher zählt also kaum.</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>Nothing runs. Figures come with the next reply.</source>
      <translation>Nichts läuft. Zahlen kommen mit der nächsten Antwort.</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>memory speed</source>
      <translation>Speichertempo</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>computing</source>
      <translation>Rechnen</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>work between steps</source>
      <translation>Arbeit zwischen Schritten</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>Reading the weights takes most of each step: drafts and more requests are nearly free.</source>
      <translation>Das Lesen der Gewichte nimmt den größten Teil jedes Schritts: Entwürfe und mehr Anfragen kosten fast nichts.</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>Arithmetic takes most of each step: more rows take longer in proportion.</source>
      <translation>Das Rechnen nimmt den größten Teil jedes Schritts: Mehr Zeilen dauern entsprechend länger.</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>Neither memory nor arithmetic is at its limit: starting work takes most of each step.</source>
      <translation>Weder Speicher noch Rechnen sind an der Grenze: Das Anstoßen der Arbeit nimmt den größten Teil jedes Schritts.</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>Not known: the bandwidth of the memory that holds the model has not been measured yet.</source>
      <translation>Nicht bekannt: Die Bandbreite des Speichers, in dem das Modell liegt, ist noch nicht gemessen.</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>Tokens per second {what}. The line is full at the fastest seen.</source>
      <translation>Token je Sekunde {what}. Die Linie ist beim höchsten gesehenen Wert voll.</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>Computed: the weights and cached tokens that each step reads, over its time.
The line is full at the measured bandwidth of the memory that holds the model.</source>
      <translation>Berechnet: die Gewichte und Token im Cache, die jeder Schritt liest, geteilt durch seine Zeit.
Die Linie ist bei der gemessenen Bandbreite des Speichers voll, in dem das Modell liegt.</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>What sets the speed: memory, computing or work between steps.
{WHY}
Click for more.</source>
      <translation>Was das Tempo bestimmt: Speicher, Rechnen oder Arbeit zwischen Schritten.
{WHY}
Klicke für mehr.</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>Tokens that were guessed ahead and accepted, {when}, and the speed against plain decoding.</source>
      <translation>Token, die vorausgeraten und angenommen wurden, {when}, und die Geschwindigkeit gegenüber einfachem Decodieren.</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>Places for requests taken: {n_active} of {n_slots}. Requests that wait: {n_waiting}.
Cells of the cache that hold tokens: {n_cells_used:,} of {n_cells:,}.</source>
      <translation>Belegte Plätze für Anfragen: {n_active} von {n_slots}. Wartende Anfragen: {n_waiting}.
Zellen des Caches mit Token: {n_cells_used:,} von {n_cells:,}.</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>of the last reply</source>
      <translation>der letzten Antwort</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>over the last second, of all requests</source>
      <translation>in der letzten Sekunde, über alle Anfragen</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>tok/s prompt</source>
      <translation>tok/s Prompt</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>of {giga} GB/s</source>
      <translation>von {giga} GB/s</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>GB/s</source>
      <translation>GB/s</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>GB/s in cache</source>
      <translation>GB/s im Cache</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>in the last reply</source>
      <translation>in der letzten Antwort</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>over the last second</source>
      <translation>in der letzten Sekunde</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>token {depth}: {accepted:.0%} of {drafted:,}</source>
      <translation>Token {depth}: {accepted:.0%} von {drafted:,}</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>drafts</source>
      <translation>Entwürfe</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>drafts · {speedup:.1f}×</source>
      <translation>Entwürfe · {speedup:.1f}×</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>active · {n_waiting} wait</source>
      <translation>aktiv · {n_waiting} warten</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>active</source>
      <translation>aktiv</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>active · 1 waits</source>
      <translation>aktiv · 1 wartet</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>limit</source>
      <translation>Grenze</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>limited by</source>
      <translation>begrenzt von</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>The peak has not been measured yet.</source>
      <translation>Der Höchstwert ist noch nicht gemessen.</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/faces.py" />
      <source>Accepted since the model was loaded:</source>
      <translation>Angenommen, seit das Modell geladen ist:</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/sparkline.py" />
      <source>Speed of the last minute</source>
      <translation>Geschwindigkeit der letzten Minute</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/sparkline.py" />
      <source>Fastest of the last minute: {fastest}</source>
      <translation>Höchstwert der letzten Minute: {fastest}</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/sparkline.py" />
      <source>Nothing in the last minute</source>
      <translation>Nichts in der letzten Minute</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/speed_bar.py" />
      <source>Now</source>
      <translation>Jetzt</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/speed_bar.py" />
      <source>Last reply</source>
      <translation>Letzte Antwort</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/speed_bar.py" />
      <source>Idle</source>
      <translation>Untätig</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/speed_bar.py" />
      <source>Speed</source>
      <translation>Geschwindigkeit</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/speed_bar.py" />
      <source>Tokens per second</source>
      <translation>Token je Sekunde</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/speed_bar.py" />
      <source>Memory bandwidth</source>
      <translation>Speicherbandbreite</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/speed_bar.py" />
      <source>What sets the speed</source>
      <translation>Was das Tempo bestimmt</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/speed_bar.py" />
      <source>Accepted drafts</source>
      <translation>Angenommene Entwürfe</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/speed_bar.py" />
      <source>Requests</source>
      <translation>Anfragen</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/speed_bar.py" />
      <source>of 8,888 GB/s</source>
      <translation>von 8.888 GB/s</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/speed_bar.py" />
      <source>drafts · 8.8×</source>
      <translation>Entwürfe · 8,8×</translation>
    </message>
    <message>
      <location filename="../../ui/gauges/speed_bar.py" />
      <source>active · 88 wait</source>
      <translation>aktiv · 88 warten</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/drafts_dialog.py" />
      <source>Notes on the drafts</source>
      <translation>Notizen zu den Entwürfen</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/drafts_dialog.py" />
      <source>Draft {number}</source>
      <translation>Entwurf {number}</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/job.py" />
      <source>Pause</source>
      <translation>Pause</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/job.py" />
      <source>Resume</source>
      <translation>Fortsetzen</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/job.py" />
      <source>Save results</source>
      <translation>Ergebnisse speichern</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/job.py" />
      <source>Save answer</source>
      <translation>Antwort speichern</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/job.py" />
      <source>Save errors</source>
      <translation>Fehler speichern</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/job.py" />
      <source>Open as chat</source>
      <translation>Als Chat öffnen</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/job.py" />
      <source>waits for its turn</source>
      <translation>wartet, bis sie dran ist</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/job.py" />
      <source>at work</source>
      <translation>in Arbeit</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/job.py" />
      <source>writes the results</source>
      <translation>schreibt die Ergebnisse</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/job.py" />
      <source>is being cancelled</source>
      <translation>wird abgebrochen</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/job.py" />
      <source>done</source>
      <translation>fertig</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/job.py" />
      <source>cancelled</source>
      <translation>abgebrochen</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/job.py" />
      <source>{stage}: {n:,}</source>
      <translation>{stage}: {n:,}</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/job.py" />
      <source>paused; it will begin anew</source>
      <translation>angehalten; beginnt von vorn</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/job.py" />
      <source>paused</source>
      <translation>angehalten</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/job.py" />
      <source>{n_over:,} of {total:,}</source>
      <translation>{n_over:,} von {total:,}</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/job.py" />
      <source>{n_failed:,} failed</source>
      <translation>{n_failed:,} fehlgeschlagen</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>A .jsonl file with a request in each line, as OpenAI's batches have it. It uses the time that chats and other programs leave, and goes on after a restart.</source>
      <translation>Eine .jsonl-Datei mit einer Anfrage je Zeile, wie OpenAI-Batches sie haben. Sie nutzt die Zeit, die Chats und andere Programme übrig lassen, und geht nach einem Neustart weiter.</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>Several drafts are written at once and distilled into one answer. That takes minutes; here it happens beside everything else.</source>
      <translation>Mehrere Entwürfe entstehen zugleich und werden zu einer Antwort verdichtet. Das dauert Minuten; hier geschieht es neben allem anderen.</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>or drop one here</source>
      <translation>oder hier ablegen</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>Let go to run it</source>
      <translation>Loslassen, um sie auszuführen</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>≈ {duration} left</source>
      <translation>≈ {duration} übrig</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>Its results were not saved, and go with it.</source>
      <translation>Die Ergebnisse wurden nicht gespeichert und gehen damit verloren.</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>Jobs</source>
      <translation>Aufgaben</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>A hard question</source>
      <translation>Eine schwere Frage</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>Question</source>
      <translation>Frage</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>Ask what is worth a few minutes of thought</source>
      <translation>Frag, was einige Minuten Nachdenken wert ist</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>Answer it deeply</source>
      <translation>Gründlich beantworten</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>Answer this question in the background</source>
      <translation>Diese Frage im Hintergrund beantworten</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>A file of requests</source>
      <translation>Eine Datei mit Anfragen</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>Choose a .jsonl file; one can also be dropped anywhere on this page</source>
      <translation>Eine .jsonl-Datei wählen; du kannst sie auch irgendwo auf dieser Seite ablegen</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>No jobs yet: ask a hard question, or choose a file.</source>
      <translation>Noch keine Aufgaben: Stelle eine schwere Frage oder wähle eine Datei.</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>Requests (*.jsonl);;All files (*)</source>
      <translation>Anfragen (*.jsonl);;Alle Dateien (*)</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>is sent to the server</source>
      <translation>wird zum Server gesendet</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>saved as {name}</source>
      <translation>gespeichert als {name}</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>Remove {name}?</source>
      <translation>{name} entfernen?</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>{name} is no file of requests: each line is a JSON object with custom_id, method, url and body.</source>
      <translation>{name} ist keine Datei mit Anfragen: Jede Zeile ist ein JSON-Objekt mit custom_id, method, url und body.</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>Write the question first.</source>
      <translation>Schreibe zuerst die Frage.</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>The question cannot be written to {tempPath}: {problem}.</source>
      <translation>Die Frage lässt sich nicht in {tempPath} schreiben: {problem}.</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>It was answered without drafts: {reason}.</source>
      <translation>Beantwortet wurde ohne Entwürfe: {reason}.</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>The drafts of this answer were not kept.</source>
      <translation>Die Entwürfe dieser Antwort wurden nicht aufgehoben.</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>is being saved</source>
      <translation>wird gespeichert</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>{name} cannot be read: {strerror}.</source>
      <translation>{name} lässt sich nicht lesen: {strerror}.</translation>
    </message>
    <message>
      <location filename="../../ui/jobs/jobs_page.py" />
      <source>{path} cannot be written: {strerror}. Choose another place.</source>
      <translation>{path} lässt sich nicht schreiben: {strerror}. Wähle einen anderen Ort.</translation>
    </message>
    <message>
      <location filename="../../ui/language/__init__.py" />
      <source>{day} {month} {year}</source>
      <translation>{day}. {month} {year}</translation>
    </message>
    <message>
      <location filename="../../ui/language/__init__.py" />
      <source>January</source>
      <translation>Januar</translation>
    </message>
    <message>
      <location filename="../../ui/language/__init__.py" />
      <source>February</source>
      <translation>Februar</translation>
    </message>
    <message>
      <location filename="../../ui/language/__init__.py" />
      <source>March</source>
      <translation>März</translation>
    </message>
    <message>
      <location filename="../../ui/language/__init__.py" />
      <source>April</source>
      <translation>April</translation>
    </message>
    <message>
      <location filename="../../ui/language/__init__.py" />
      <source>May</source>
      <translation>Mai</translation>
    </message>
    <message>
      <location filename="../../ui/language/__init__.py" />
      <source>June</source>
      <translation>Juni</translation>
    </message>
    <message>
      <location filename="../../ui/language/__init__.py" />
      <source>July</source>
      <translation>Juli</translation>
    </message>
    <message>
      <location filename="../../ui/language/__init__.py" />
      <source>August</source>
      <translation>August</translation>
    </message>
    <message>
      <location filename="../../ui/language/__init__.py" />
      <source>September</source>
      <translation>September</translation>
    </message>
    <message>
      <location filename="../../ui/language/__init__.py" />
      <source>October</source>
      <translation>Oktober</translation>
    </message>
    <message>
      <location filename="../../ui/language/__init__.py" />
      <source>November</source>
      <translation>November</translation>
    </message>
    <message>
      <location filename="../../ui/language/__init__.py" />
      <source>December</source>
      <translation>Dezember</translation>
    </message>
    <message>
      <location filename="../../ui/library/downloads_view.py" />
      <source>The {n_done} that have arrived are deleted.</source>
      <translation>Die {n_done}, die schon da sind, werden gelöscht.</translation>
    </message>
    <message>
      <location filename="../../ui/library/downloads_view.py" />
      <source>Cancel and remove what has arrived</source>
      <translation>Abbrechen und entfernen, was schon da ist</translation>
    </message>
    <message>
      <location filename="../../ui/library/downloads_view.py" />
      <source>Progress of {title}</source>
      <translation>Fortschritt von {title}</translation>
    </message>
    <message>
      <location filename="../../ui/library/downloads_view.py" />
      <source>Find another</source>
      <translation>Anderes suchen</translation>
    </message>
    <message>
      <location filename="../../ui/library/downloads_view.py" />
      <source>Downloads</source>
      <translation>Downloads</translation>
    </message>
    <message>
      <location filename="../../ui/library/downloads_view.py" />
      <source>Clear finished</source>
      <translation>Fertige entfernen</translation>
    </message>
    <message>
      <location filename="../../ui/library/downloads_view.py" />
      <source>Models that you download are here, with their speed and how long they take.</source>
      <translation>Hier stehen die Modelle, die du herunterlädst, mit ihrem Tempo und ihrer Dauer.</translation>
    </message>
    <message>
      <location filename="../../ui/library/downloads_view.py" />
      <source>Pause it to keep them.</source>
      <translation>Halte den Download an, um sie zu behalten.</translation>
    </message>
    <message>
      <location filename="../../ui/library/downloads_view.py" />
      <source>The library stopped and is starting again. Downloads go on where they were.</source>
      <translation>Die Bibliothek hat angehalten und startet neu. Downloads gehen weiter, wo sie waren.</translation>
    </message>
    <message>
      <location filename="../../ui/library/downloads_view.py" />
      <source>Earlier</source>
      <translation>Früher</translation>
    </message>
    <message>
      <location filename="../../ui/library/downloads_view.py" />
      <source>Later</source>
      <translation>Später</translation>
    </message>
    <message>
      <location filename="../../ui/library/downloads_view.py" />
      <source>Use</source>
      <translation>Verwenden</translation>
    </message>
    <message>
      <location filename="../../ui/library/downloads_view.py" />
      <source>Load this model and chat with it</source>
      <translation>Dieses Modell laden und damit chatten</translation>
    </message>
    <message>
      <location filename="../../ui/library/downloads_view.py" />
      <source>Find models</source>
      <translation>Modelle finden</translation>
    </message>
    <message>
      <location filename="../../ui/library/downloads_view.py" />
      <source>Nothing is downloaded</source>
      <translation>Nichts wird heruntergeladen</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>Fit and speed are estimates for the quantisation in the row, refined when a model is opened.</source>
      <translation>Passung und Tempo sind Schätzungen für die Quantisierung in der Zeile; beim Öffnen eines Modells werden sie genauer.</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>gated</source>
      <translation>mit Zugangsbedingungen</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>private</source>
      <translation>privat</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>Most downloads</source>
      <translation>Meiste Downloads</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>Most likes</source>
      <translation>Meiste Likes</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>Trending</source>
      <translation>Im Trend</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>Updated last</source>
      <translation>Zuletzt geändert</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>Newest</source>
      <translation>Neueste</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>The Hub has no GGUF models by these words. Try fewer or other words.</source>
      <translation>Der Hub hat zu diesen Wörtern keine GGUF-Modelle. Versuche es mit weniger oder anderen Wörtern.</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>predicted for this machine; people read about five tokens a second</source>
      <translation>für diesen Rechner vorhergesagt; Menschen lesen etwa fünf Token je Sekunde</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>Search the Hugging Face Hub</source>
      <translation>Hugging Face Hub durchsuchen</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>Models to find</source>
      <translation>Modelle zum Finden</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>All results</source>
      <translation>Alle Ergebnisse</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>“{words}” on the Hub</source>
      <translation>„{words}“ auf dem Hub</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>Asking the Hub…</source>
      <translation>Fragt den Hub…</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>Nothing was found</source>
      <translation>Nichts gefunden</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>The Hub cannot be reached</source>
      <translation>Der Hub ist nicht erreichbar</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>The search did not work</source>
      <translation>Die Suche hat nicht geklappt</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>To begin with</source>
      <translation>Für den Anfang</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>not known until this machine was measured</source>
      <translation>erst bekannt, wenn dieser Rechner gemessen ist</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>Speeds are {speeds}. {source} As of {date}.</source>
      <translation>Geschwindigkeiten sind {speeds}. {source} Stand {date}.</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>Order: {words}</source>
      <translation>Reihenfolge: {words}</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>1 like</source>
      <translation>1 Like</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>{n} found</source>
      <translation>{n} gefunden</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>Clear the search</source>
      <translation>Suche leeren</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>Hub settings…</source>
      <translation>Hub-Einstellungen…</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>Judging the list for this machine…</source>
      <translation>Beurteilt die Liste für diesen Rechner…</translation>
    </message>
    <message>
      <location filename="../../ui/library/find_view.py" />
      <source>{likes} likes</source>
      <translation>{likes} Likes</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>Measuring how fast its memory is: that sets how fast a model can write.</source>
      <translation>Misst, wie schnell der Speicher ist: Das bestimmt, wie schnell ein Modell schreiben kann.</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>Quick</source>
      <translation>Schnell</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>Balanced</source>
      <translation>Ausgewogen</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>Best answers</source>
      <translation>Beste Antworten</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>Its memory reads {bandwidth} a second: that sets how fast a model can write.</source>
      <translation>Der Speicher liest {bandwidth} je Sekunde: Das bestimmt, wie schnell ein Modell schreiben kann.</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>{name} reads {bandwidth} a second: that sets how fast a model in its memory can write.</source>
      <translation>{name} liest {bandwidth} je Sekunde: Das bestimmt, wie schnell ein Modell in ihrem Speicher schreiben kann.</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>How fast {name} reads a model is measured when nothing else is at work.</source>
      <translation>Wie schnell {name} ein Modell liest, wird gemessen, sobald sonst nichts arbeitet.</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>The Hub does not have this model any more, or hides it. Take another one, or look for one.</source>
      <translation>Der Hub hat dieses Modell nicht mehr oder verbirgt es. Nimm ein anderes oder suche eines.</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>Use them</source>
      <translation>Diese verwenden</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>Close this card</source>
      <translation>Diese Karte schließen</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>Open a model file…</source>
      <translation>Modelldatei öffnen…</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>Use a .gguf file of this machine; this needs no network</source>
      <translation>Eine .gguf-Datei dieses Rechners verwenden; dafür braucht es kein Netz</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>All models…</source>
      <translation>Alle Modelle…</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>Models for your machine</source>
      <translation>Modelle für deinen Rechner</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>{n} cores</source>
      <translation>{n} Kerne</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>1 core</source>
      <translation>1 Kern</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>≈ is an estimate. A token (tok) is a piece of a word; people read about five a second.</source>
      <translation>≈ ist eine Schätzung. Ein Token (tok) ist ein Stück eines Wortes; Menschen lesen etwa fünf je Sekunde.</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>Choose a model</source>
      <translation>Ein Modell wählen</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>Models (*.gguf)</source>
      <translation>Modelle (*.gguf)</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>Download  {n_bytes}</source>
      <translation>Herunterladen  {n_bytes}</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>{drafted_rate} with its own drafts</source>
      <translation>{drafted_rate} mit eigenen Entwürfen</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>Download {title}, {n_bytes}</source>
      <translation>{title} herunterladen, {n_bytes}</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>{name} with {memory}</source>
      <translation>{name} mit {memory}</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>no usable GPU</source>
      <translation>keine nutzbare GPU</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>{memory} of memory</source>
      <translation>{memory} Speicher</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>Other programs were busy, so it is measured again when they are at rest.</source>
      <translation>Andere Programme waren beschäftigt, deshalb wird noch einmal gemessen, wenn sie ruhen.</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>None of the usual models fits well into this machine's memory. Smaller ones may.</source>
      <translation>Keines der üblichen Modelle passt gut in den Speicher dieses Rechners. Kleinere vielleicht.</translation>
    </message>
    <message>
      <location filename="../../ui/library/first_start.py" />
      <source>Go on</source>
      <translation>Weiter</translation>
    </message>
    <message>
      <location filename="../../ui/library/hub_dialog.py" />
      <source>HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE in the environment go before what is set here. The token is kept in the system's keyring.</source>
      <translation>HF_ENDPOINT, HF_TOKEN und HF_HUB_OFFLINE der Umgebung haben Vorrang vor dem, was hier steht. Das Token liegt im Schlüsselbund des Systems.</translation>
    </message>
    <message>
      <location filename="../../ui/library/hub_dialog.py" />
      <source>Not logged in.</source>
      <translation>Nicht angemeldet.</translation>
    </message>
    <message>
      <location filename="../../ui/library/hub_dialog.py" />
      <source>Models whose licence has to be accepted, and private ones, need an access token. You make one on huggingface.co, in Settings.</source>
      <translation>Modelle, deren Lizenz man annehmen muss, und private brauchen ein Zugangs-Token. Du erstellst es auf huggingface.co unter Settings.</translation>
    </message>
    <message>
      <location filename="../../ui/library/hub_dialog.py" />
      <source>the system keyring</source>
      <translation>den Schlüsselbund des Systems</translation>
    </message>
    <message>
      <location filename="../../ui/library/hub_dialog.py" />
      <source>Hugging Face's token file</source>
      <translation>die Token-Datei von Hugging Face</translation>
    </message>
    <message>
      <location filename="../../ui/library/hub_dialog.py" />
      <source>Hub settings</source>
      <translation>Hub-Einstellungen</translation>
    </message>
    <message>
      <location filename="../../ui/library/hub_dialog.py" />
      <source>Like the system</source>
      <translation>Wie das System</translation>
    </message>
    <message>
      <location filename="../../ui/library/hub_dialog.py" />
      <source>Paste an access token: hf_…</source>
      <translation>Zugangs-Token einfügen: hf_…</translation>
    </message>
    <message>
      <location filename="../../ui/library/hub_dialog.py" />
      <source> HF_HUB_OFFLINE is set: the Hub is not asked.</source>
      <translation> HF_HUB_OFFLINE ist gesetzt: Der Hub wird nicht gefragt.</translation>
    </message>
    <message>
      <location filename="../../ui/library/hub_dialog.py" />
      <source>Logged in by {token}.</source>
      <translation>Angemeldet durch {token}.</translation>
    </message>
    <message>
      <location filename="../../ui/library/hub_dialog.py" />
      <source>Log in</source>
      <translation>Anmelden</translation>
    </message>
    <message>
      <location filename="../../ui/library/hub_dialog.py" />
      <source>Log out</source>
      <translation>Abmelden</translation>
    </message>
    <message>
      <location filename="../../ui/library/hub_dialog.py" />
      <source>Access token</source>
      <translation>Zugangs-Token</translation>
    </message>
    <message>
      <location filename="../../ui/library/hub_dialog.py" />
      <source>Address</source>
      <translation>Adresse</translation>
    </message>
    <message>
      <location filename="../../ui/library/hub_dialog.py" />
      <source>Proxy</source>
      <translation>Proxy</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>{kind} has models on this machine, in {path}.</source>
      <translation>{kind} hat Modelle auf diesem Rechner, in {path}.</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>{rate}{without}, after {n_past} tokens</source>
      <translation>{rate}{without}, nach {n_past} Token</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>{name} ({kind}, {n_bytes}) would draft: {gain:.1f}× expected{doubt}.</source>
      <translation>{name} ({kind}, {n_bytes}) könnte vorausraten: {gain:.1f}× erwartet{doubt}.</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Waits for its turn</source>
      <translation>Wartet, bis es dran ist</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Another Slipstream downloads it</source>
      <translation>Ein anderes Slipstream lädt es herunter</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Checking what is there</source>
      <translation>Prüft, was da ist</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Verifying</source>
      <translation>Wird geprüft</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Paused</source>
      <translation>Pausiert</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Failed</source>
      <translation>Fehlgeschlagen</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Cancelled</source>
      <translation>Abgebrochen</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Downloaded and verified</source>
      <translation>Heruntergeladen und geprüft</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Another Slipstream makes it</source>
      <translation>Ein anderes Slipstream stellt es her</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Looking at the model</source>
      <translation>Sieht sich das Modell an</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Quantising</source>
      <translation>Quantisiert</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Loading the result, to see that it works</source>
      <translation>Lädt das Ergebnis, um zu sehen, dass es geht</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>{type} of {source}</source>
      <translation>{type} von {source}</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>fits</source>
      <translation>passt</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>tight</source>
      <translation>knapp</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>does not fit</source>
      <translation>passt nicht</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>The Hugging Face cache</source>
      <translation>Der Cache von Hugging Face</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>{total}, {active} active</source>
      <translation>{total}, {active} aktiv</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>yes, against the Hub's SHA-256</source>
      <translation>ja, gegen die SHA-256 des Hubs</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>no, changed since download</source>
      <translation>nein, seit dem Download verändert</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>not yet: chat with it while nothing else is busy</source>
      <translation>noch nicht: chatte damit, wenn sonst nichts läuft</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>, {plain_rate} without drafts</source>
      <translation>, {plain_rate} ohne Entwürfe</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>1 download</source>
      <translation>1 Download</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>{downloads} downloads</source>
      <translation>{downloads} Downloads</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>drafted nothing</source>
      <translation>machte keine Entwürfe</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>{measured:.2f}× measured</source>
      <translation>{measured:.2f}× gemessen</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>{predicted:.2f}× expected</source>
      <translation>{predicted:.2f}× erwartet</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>. Its vocabulary is compared once it is here</source>
      <translation>. Sein Vokabular wird verglichen, sobald es hier ist</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>{share:.0%} of {n_total}</source>
      <translation>{share:.0%} von {n_total}</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>{duration} left</source>
      <translation>{duration} übrig</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Nothing has arrived for {duration}, still trying</source>
      <translation>Seit {duration} kommt nichts an, es wird weiter versucht</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>{value} of {n_total}</source>
      <translation>{value} von {n_total}</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Architecture</source>
      <translation>Architektur</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Parameters</source>
      <translation>Parameter</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Quantisation</source>
      <translation>Quantisierung</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Size</source>
      <translation>Größe</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Context</source>
      <translation>Kontext</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Licence</source>
      <translation>Lizenz</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Source</source>
      <translation>Quelle</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Verified</source>
      <translation>Geprüft</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Last used</source>
      <translation>Zuletzt benutzt</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>no</source>
      <translation>nein</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Expected</source>
      <translation>Erwartet</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Measured</source>
      <translation>Gemessen</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Layers</source>
      <translation>Schichten</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Experts</source>
      <translation>Experten</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Read per token</source>
      <translation>Gelesen je Token</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Cache per token</source>
      <translation>Cache je Token</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Vocabulary</source>
      <translation>Vokabular</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Tokenizer</source>
      <translation>Tokenizer</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Chat template</source>
      <translation>Chat-Vorlage</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Expected speed</source>
      <translation>Erwartetes Tempo</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Made, and it loads</source>
      <translation>Hergestellt, und sie lässt sich laden</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>{n_ctx_train} tokens</source>
      <translation>{n_ctx_train} Token</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>not known yet</source>
      <translation>noch nicht bekannt</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>At full context</source>
      <translation>Bei vollem Kontext</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>{full} after {n_ctx} tokens</source>
      <translation>{full} nach {n_ctx} Token</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>{rate} ({gain:.2f}× measured)</source>
      <translation>{rate} ({gain:.2f}× gemessen)</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>{rate} ({gain:.2f}× expected)</source>
      <translation>{rate} ({gain:.2f}× erwartet)</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>{n_experts_used} of {n_experts} for each token</source>
      <translation>{n_experts_used} von {n_experts} für jedes Token</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>none</source>
      <translation>keine</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>{n_vocab} tokens</source>
      <translation>{n_vocab} Token</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>yes</source>
      <translation>ja</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>Files</source>
      <translation>Dateien</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>At {n_ctx} tokens</source>
      <translation>Bei {n_ctx} Token</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>comes with Slipstream</source>
      <translation>kommt mit Slipstream</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>With drafts</source>
      <translation>Mit Entwürfen</translation>
    </message>
    <message>
      <location filename="../../ui/library/labels.py" />
      <source>0 MB</source>
      <translation>0 MB</translation>
    </message>
    <message>
      <location filename="../../ui/library/library_page.py" />
      <source>On this machine</source>
      <translation>Auf diesem Rechner</translation>
    </message>
    <message>
      <location filename="../../ui/library/library_page.py" />
      <source>Find</source>
      <translation>Suchen</translation>
    </message>
    <message>
      <location filename="../../ui/library/library_page.py" />
      <source>{name} is in the trash</source>
      <translation>{name} ist im Papierkorb</translation>
    </message>
    <message>
      <location filename="../../ui/library/machine_card.py" />
      <source>Stop measuring</source>
      <translation>Die Messung anhalten</translation>
    </message>
    <message>
      <location filename="../../ui/library/machine_card.py" />
      <source>Measure this machine</source>
      <translation>Diesen Rechner messen</translation>
    </message>
    <message>
      <location filename="../../ui/library/machine_card.py" />
      <source>Measure this machine again</source>
      <translation>Diesen Rechner neu messen</translation>
    </message>
    <message>
      <location filename="../../ui/library/machine_card.py" />
      <source>How fast memory and processor are, in about ten seconds: speeds are predicted from it</source>
      <translation>Wie schnell Speicher und Prozessor sind, in etwa zehn Sekunden: Daraus werden Geschwindigkeiten vorhergesagt</translation>
    </message>
    <message>
      <location filename="../../ui/library/machine_card.py" />
      <source>Progress of the measurement</source>
      <translation>Fortschritt der Messung</translation>
    </message>
    <message>
      <location filename="../../ui/library/machine_card.py" />
      <source>Measuring this machine…</source>
      <translation>Dieser Rechner wird gemessen…</translation>
    </message>
    <message>
      <location filename="../../ui/library/machine_card.py" />
      <source>Judging it…</source>
      <translation>Beurteilt es…</translation>
    </message>
    <message>
      <location filename="../../ui/library/machine_card.py" />
      <source>The speed is not known yet: “{MEASURE}” finds it out.</source>
      <translation>Das Tempo ist noch nicht bekannt: „{MEASURE}“ findet es heraus.</translation>
    </message>
    <message>
      <location filename="../../ui/library/machine_card.py" />
      <source>Stopping…</source>
      <translation>Hält an…</translation>
    </message>
    <message>
      <location filename="../../ui/library/model_details.py" />
      <source>A toy that comes with Slipstream, to try everything with. It is wrong about most things.</source>
      <translation>Ein Spielzeug, das mit Slipstream kommt, zum Ausprobieren. Es irrt sich bei fast allem.</translation>
    </message>
    <message>
      <location filename="../../ui/library/model_details.py" />
      <source>It is being downloaded again. The changed file stays until the right one is whole.</source>
      <translation>Es wird noch einmal heruntergeladen. Die veränderte Datei bleibt, bis die richtige ganz da ist.</translation>
    </message>
    <message>
      <location filename="../../ui/library/model_details.py" />
      <source>Download again</source>
      <translation>Noch einmal herunterladen</translation>
    </message>
    <message>
      <location filename="../../ui/library/model_details.py" />
      <source>Show in downloads</source>
      <translation>In Downloads zeigen</translation>
    </message>
    <message>
      <location filename="../../ui/library/model_details.py" />
      <source>Move {name} to the trash?</source>
      <translation>{name} in den Papierkorb legen?</translation>
    </message>
    <message>
      <location filename="../../ui/library/model_details.py" />
      <source>All files of this model are moved. Chats that used it stay.</source>
      <translation>Alle Dateien dieses Modells werden verschoben. Chats, die es benutzt haben, bleiben.</translation>
    </message>
    <message>
      <location filename="../../ui/library/model_details.py" />
      <source>Reveal in folder</source>
      <translation>Ordner öffnen</translation>
    </message>
    <message>
      <location filename="../../ui/library/model_details.py" />
      <source>Remove…</source>
      <translation>Entfernen…</translation>
    </message>
    <message>
      <location filename="../../ui/library/model_details.py" />
      <source>From its header</source>
      <translation>Aus dem Kopf der Datei</translation>
    </message>
    <message>
      <location filename="../../ui/library/model_details.py" />
      <source>Move to trash</source>
      <translation>In den Papierkorb</translation>
    </message>
    <message>
      <location filename="../../ui/library/model_details.py" />
      <source>Settings…</source>
      <translation>Einstellungen…</translation>
    </message>
    <message>
      <location filename="../../ui/library/model_details.py" />
      <source>Make a smaller copy…</source>
      <translation>Kleinere Kopie…</translation>
    </message>
    <message>
      <location filename="../../ui/library/model_details.py" />
      <source>In use</source>
      <translation>In Gebrauch</translation>
    </message>
    <message>
      <location filename="../../ui/library/model_details.py" />
      <source>No program here shows folders. It is {folder}.</source>
      <translation>Kein Programm hier zeigt Ordner. Er ist {folder}.</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>changed</source>
      <translation>verändert</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>Filter models</source>
      <translation>Modelle filtern</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>Import folder…</source>
      <translation>Ordner importieren…</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>Use the models of a folder where they are</source>
      <translation>Die Modelle eines Ordners dort verwenden, wo sie sind</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>Imported folders…</source>
      <translation>Importierte Ordner…</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>Models on this machine</source>
      <translation>Modelle auf diesem Rechner</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>Looking for models…</source>
      <translation>Sucht Modelle…</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>All models</source>
      <translation>Alle Modelle</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>Import folder</source>
      <translation>Ordner importieren</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>Looked for in {names}</source>
      <translation>Gesucht in {names}</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source> ({n_more} more)</source>
      <translation> ({n_more} weitere)</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>The models cannot be listed</source>
      <translation>Die Modelle lassen sich nicht auflisten</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>Choose another folder…</source>
      <translation>Anderen Ordner wählen…</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>Forget {path}</source>
      <translation>{path} vergessen</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>Its files stay where they are</source>
      <translation>Die Dateien bleiben, wo sie sind</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>No model like that here</source>
      <translation>Kein solches Modell hier</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>Download one from the Hub, or import a folder that has GGUF files.</source>
      <translation>Lade eines vom Hub herunter, oder importiere einen Ordner mit GGUF-Dateien.</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>in use</source>
      <translation>in Gebrauch</translation>
    </message>
    <message>
      <location filename="../../ui/library/models_view.py" />
      <source>Find it on the Hub</source>
      <translation>Auf dem Hub finden</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Stopped. What had been measured is kept; who drafts is as before.</source>
      <translation>Angehalten. Was gemessen war, bleibt; wer Entwürfe macht, ist wie zuvor.</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Who drafts when this model is loaded</source>
      <translation>Wer Entwürfe macht, wenn dieses Modell geladen ist</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>The model's settings name it. What is chosen here takes its place.</source>
      <translation>Die Einstellungen des Modells nennen es. Was hier gewählt wird, tritt an seine Stelle.</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>This takes effect when the model is loaded next.</source>
      <translation>Das gilt vom nächsten Laden des Modells an.</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>The draft in the model's settings is reset.</source>
      <translation>Der Entwurf in den Einstellungen des Modells ist zurückgesetzt.</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>There is nothing to download that is known to fit.</source>
      <translation>Es gibt nichts herunterzuladen, von dem bekannt ist, dass es passt.</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Loading {}…</source>
      <translation>Lädt {}…</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Measuring with {}…</source>
      <translation>Misst mit {}…</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>A reply is being written on this machine. The test begins when that is done: beside it, its figures would be wrong and the reply slower.</source>
      <translation>Auf diesem Rechner wird gerade eine Antwort geschrieben. Der Test beginnt danach: Daneben wären seine Zahlen falsch und die Antwort langsamer.</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>A model is being loaded on this machine. The test begins when that is done: beside it, its figures would be wrong.</source>
      <translation>Auf diesem Rechner wird gerade ein Modell geladen. Der Test beginnt danach: Daneben wären seine Zahlen falsch.</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Drafts for it</source>
      <translation>Entwürfe dafür</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Measures on this machine and keeps the fastest; takes about a minute for each</source>
      <translation>Misst auf diesem Rechner und behält das Schnellste; dauert für jedes etwa eine Minute</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Test anyway</source>
      <translation>Trotzdem testen</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Test of the pair</source>
      <translation>Test des Paars</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Comparing with the models here…</source>
      <translation>Vergleicht mit den Modellen hier…</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>{name} cannot draft. {problem}</source>
      <translation>{name} kann keine Entwürfe machen. {problem}</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>{n_refused} more cannot either.</source>
      <translation>{n_refused} weitere können es auch nicht.</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Who drafts: {now}</source>
      <translation>Wer Entwürfe macht: {now}</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>In the queue</source>
      <translation>In der Warteschlange</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Starting…</source>
      <translation>Startet…</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Automatic</source>
      <translation>Automatisch</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Test this pair</source>
      <translation>Dieses Paar testen</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Test the best {n_tested}</source>
      <translation>Die besten {n_tested} testen</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Looking for a small model to download…</source>
      <translation>Sucht ein kleines Modell zum Herunterladen…</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>None</source>
      <translation>Keines</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Download</source>
      <translation>Herunterladen</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Stop the test</source>
      <translation>Den Test anhalten</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>1 more cannot either.</source>
      <translation>Ein weiteres kann es auch nicht.</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>{now}, by its settings</source>
      <translation>{now}, durch seine Einstellungen</translation>
    </message>
    <message>
      <location filename="../../ui/library/partners_card.py" />
      <source>Test again</source>
      <translation>Neu testen</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>{model} is quantised already ({type}): quantised again it loses more than the original would when it is quantised once. A smaller file from the maker, or one made of the F16 or BF16 file, is better.</source>
      <translation>{model} ist schon quantisiert ({type}): Noch einmal quantisiert verliert es mehr als das Original bei einmaligem Quantisieren. Besser ist eine kleinere Datei vom Hersteller oder eine aus der F16- oder BF16-Datei.</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>It goes on when you close this, and is under Downloads. When you quit Slipstream, it ends.</source>
      <translation>Es geht weiter, wenn du das hier schließt, und steht unter Downloads. Wenn du Slipstream beendest, endet es.</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>Takes about {n_bytes} of the {free} that are free, in {folder}.</source>
      <translation>Braucht etwa {n_bytes} von {free}, die frei sind, in {folder}.</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>usual choice</source>
      <translation>übliche Wahl</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>about {n_bytes}</source>
      <translation>etwa {n_bytes}</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>Making of the copy</source>
      <translation>Herstellen der Kopie</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>Make a smaller copy</source>
      <translation>Eine kleinere Kopie erstellen</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>Types, the best first</source>
      <translation>Typen, die besten zuerst</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>Name of the copy</source>
      <translation>Name der Kopie</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>nothing</source>
      <translation>nichts</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>There is no room for it: it takes about {n_bytes}, and {free} is free. Free some.</source>
      <translation>Dafür ist kein Platz: Es braucht etwa {n_bytes}, und {free} sind frei. Schaffe Platz.</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>Take off the list</source>
      <translation>Von der Liste nehmen</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>Cancel; nothing of it stays</source>
      <translation>Abbrechen; nichts davon bleibt</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>Make it all the same</source>
      <translation>Trotzdem erstellen</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>Make copy</source>
      <translation>Kopie erstellen</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>Cancel the copy</source>
      <translation>Die Kopie abbrechen</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>Show it</source>
      <translation>Zeigen</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>stays as it is</source>
      <translation>bleibt, wie es ist</translation>
    </message>
    <message>
      <location filename="../../ui/library/quantise_dialog.py" />
      <source>Choose another</source>
      <translation>Ein anderes wählen</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>Use this model</source>
      <translation>Dieses Modell verwenden</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>Download failed: see why</source>
      <translation>Download gescheitert: Grund ansehen</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>for images, beside a model</source>
      <translation>für Bilder, neben einem Modell</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>drafts for a model</source>
      <translation>Entwürfe für ein Modell</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>no model</source>
      <translation>kein Modell</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>Open its page</source>
      <translation>Seine Seite öffnen</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>Quantisations</source>
      <translation>Quantisierungen</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>Asking the Hub about {repo_id}…</source>
      <translation>Fragt den Hub nach {repo_id}…</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>made from {names}</source>
      <translation>abgeleitet von {names}</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>This repository has no GGUF files, which is what Slipstream runs. Search for one that has.</source>
      <translation>Dieses Repository hat keine GGUF-Dateien, und nur die führt Slipstream aus. Suche nach einem, das welche hat.</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>This cannot be shown</source>
      <translation>Das lässt sich nicht zeigen</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>Gated: its makers ask you to accept their conditions on its page before you can download it.</source>
      <translation>Mit Bedingungen: Die Hersteller bitten dich, sie auf der Seite anzunehmen, bevor du herunterladen kannst.</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>{n_files} files</source>
      <translation>{n_files} Dateien</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>{missing} of its files are missing</source>
      <translation>{missing} der Dateien fehlen</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>1 of its files is missing</source>
      <translation>1 der Dateien fehlt</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>{n_ctx_train} tokens of context</source>
      <translation>{n_ctx_train} Token Kontext</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>licence {licence}</source>
      <translation>Lizenz {licence}</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>Which of these suits this machine?</source>
      <translation>Was davon passt zu diesem Rechner?</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>Nothing to run here</source>
      <translation>Hier ist nichts auszuführen</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>Recommended here: {sentence}</source>
      <translation>Hier empfohlen: {sentence}</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>{asked_as} has been renamed to this.</source>
      <translation>{asked_as} heißt jetzt so.</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>recommended</source>
      <translation>empfohlen</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>Reading its header…</source>
      <translation>Liest den Kopf der Datei…</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>{name} and its draft</source>
      <translation>{name} und sein Entwurfsmodell</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>With its draft ({n_bytes}), about {gain:.1f}× as fast</source>
      <translation>Mit dem Entwurf ({n_bytes}) etwa {gain:.1f}× so schnell</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>Download  {what}  ({n_bytes})</source>
      <translation>Herunterladen  {what}  ({n_bytes})</translation>
    </message>
    <message>
      <location filename="../../ui/library/repository_pane.py" />
      <source>Downloaded</source>
      <translation>Heruntergeladen</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_row.py" />
      <source>None. How should the model behave?</source>
      <translation>Keiner. Wie soll sich das Modell verhalten?</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_row.py" />
      <source>Reset</source>
      <translation>Zurücksetzen</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_row.py" />
      <source>Reset {label}</source>
      <translation>{label} zurücksetzen</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_row.py" />
      <source>As recommended again</source>
      <translation>Wieder wie empfohlen</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_row.py" />
      <source>{name} (recommended)</source>
      <translation>{name} (empfohlen)</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Automatic (recommended)</source>
      <translation>Automatisch (empfohlen)</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>None: this machine alone</source>
      <translation>Keiner: dieser Rechner allein</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Heads in its file</source>
      <translation>Heads in der Datei</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Tokens of prompt and reply together. A longer one takes more memory.</source>
      <translation>Token von Prompt und Antwort zusammen. Ein längerer braucht mehr Speicher.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>q8_0 halves the memory of the context at hardly any loss; q4_0 costs some.</source>
      <translation>q8_0 halbiert den Speicher des Kontexts fast ohne Verlust; q4_0 kostet etwas.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>GPU layers</source>
      <translation>GPU-Schichten</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>How many layers are on the GPU; 0 uses the processor alone.</source>
      <translation>Wie viele Schichten auf der GPU sind; 0 nutzt den Prozessor allein.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Threads</source>
      <translation>Threads</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Threads of the processor.</source>
      <translation>Threads des Prozessors.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Draft</source>
      <translation>Entwurf</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>A small model or head that guesses ahead: replies stay the same and come sooner.</source>
      <translation>Ein kleines Modell oder ein Head, der vorausrät: Antworten bleiben gleich und kommen früher.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Also use worker</source>
      <translation>Auch Worker nutzen</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Another machine that lends its memory to this model. The Server page adds workers.</source>
      <translation>Ein anderer Rechner, der diesem Modell Speicher leiht. Die Seite Server fügt Worker hinzu.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>How soon replies are wanted where a chat does not say.</source>
      <translation>Wie bald Antworten gewünscht sind, wo ein Chat nichts sagt.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>What chats begin with that have none of their own.</source>
      <translation>Womit Chats beginnen, die keinen eigenen haben.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Only the most likely tokens that together reach this probability; 1 is off.</source>
      <translation>Nur die wahrscheinlichsten Token, die zusammen diese Wahrscheinlichkeit erreichen; 1 ist aus.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Only tokens at least this likely, measured against the most likely one; 0 is off.</source>
      <translation>Nur Token, die gemessen am wahrscheinlichsten mindestens so wahrscheinlich sind; 0 ist aus.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Typical P</source>
      <translation>Typical P</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Only tokens about as surprising as usual; 1 is off.</source>
      <translation>Nur Token, die etwa so überraschend sind wie üblich; 1 ist aus.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Top N sigma</source>
      <translation>Top N Sigma</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Only tokens within so many deviations of the best; -1 is off.</source>
      <translation>Nur Token innerhalb so vieler Abweichungen vom besten; -1 ist aus.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>XTC probability</source>
      <translation>XTC-Wahrscheinlichkeit</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>How often the most likely tokens are left out; 0 is off.</source>
      <translation>Wie oft die wahrscheinlichsten Token weggelassen werden; 0 ist aus.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>XTC threshold</source>
      <translation>XTC-Schwelle</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Which tokens count as most likely for XTC.</source>
      <translation>Welche Token für XTC als die wahrscheinlichsten gelten.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>DRY multiplier</source>
      <translation>DRY-Faktor</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>How strongly repeated phrases are avoided; 0 is off.</source>
      <translation>Wie stark wiederholte Wendungen vermieden werden; 0 ist aus.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Repeat window</source>
      <translation>Wiederholungsfenster</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>How many recent tokens that looks at; -1 is all, 0 is off.</source>
      <translation>Auf wie viele jüngste Token das schaut; -1 ist alle, 0 ist aus.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Frequency penalty</source>
      <translation>Häufigkeitsstrafe</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Above 0 avoids tokens by how often they came; 0 is off.</source>
      <translation>Über 0 meidet Token danach, wie oft sie kamen; 0 ist aus.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Presence penalty</source>
      <translation>Präsenzstrafe</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/setting_words.py" />
      <source>Above 0 avoids tokens that came at all; 0 is off.</source>
      <translation>Über 0 meidet Token, die überhaupt vorkamen; 0 ist aus.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/settings_dialog.py" />
      <source>These take effect when the model is loaded next.</source>
      <translation>Diese gelten, wenn das Modell das nächste Mal geladen wird.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/settings_dialog.py" />
      <source>These take effect at once, unless a chat or a request says otherwise.</source>
      <translation>Diese gelten sofort, außer ein Chat oder eine Anfrage sagt etwas anderes.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/settings_dialog.py" />
      <source>Settings of {model}</source>
      <translation>Einstellungen von {model}</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/settings_dialog.py" />
      <source>Reset all</source>
      <translation>Alle zurücksetzen</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/settings_dialog.py" />
      <source>Reset everything to what is recommended</source>
      <translation>Alles auf das Empfohlene zurücksetzen</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/settings_dialog.py" />
      <source>Loading</source>
      <translation>Laden</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/settings_dialog.py" />
      <source>Replies</source>
      <translation>Antworten</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/settings_dialog.py" />
      <source> Those under Loading take effect when it is loaded next.</source>
      <translation> Die unter Laden gelten beim nächsten Laden.</translation>
    </message>
    <message>
      <location filename="../../ui/library/settings/settings_dialog.py" />
      <source>The settings of {model} are saved.{later}</source>
      <translation>Die Einstellungen von {model} sind gespeichert.{later}</translation>
    </message>
    <message>
      <location filename="../../ui/platform/desktop_entry.py" />
      <source>Language models</source>
      <translation>Sprachmodelle</translation>
    </message>
    <message>
      <location filename="../../ui/platform/desktop_entry.py" />
      <source>Run language models on this machine, and see why they are fast</source>
      <translation>Sprachmodelle auf diesem Rechner ausführen und sehen, warum sie schnell sind</translation>
    </message>
    <message>
      <location filename="../../ui/platform/desktop_entry.py" />
      <source>Menus of this kind are those of Linux desktops; there are none on this system.</source>
      <translation>Solche Menüs haben Linux-Desktops; auf diesem System gibt es keine.</translation>
    </message>
    <message>
      <location filename="../../ui/platform/desktop_entry.py" />
      <source>{path} cannot be written: {strerror}.</source>
      <translation>{path} lässt sich nicht schreiben: {strerror}.</translation>
    </message>
    <message>
      <location filename="../../ui/platform/desktop_entry.py" />
      <source>{path} cannot be removed: {strerror}.</source>
      <translation>{path} lässt sich nicht entfernen: {strerror}.</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>waits</source>
      <translation>wartet</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>reads the prompt</source>
      <translation>liest den Prompt</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>writes</source>
      <translation>schreibt</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>makes vectors</source>
      <translation>macht Vektoren</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>loading</source>
      <translation>lädt</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>starting again</source>
      <translation>startet neu</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>did not load</source>
      <translation>nicht geladen</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>Use this model, and load it again if its settings have changed</source>
      <translation>Dieses Modell verwenden und neu laden, falls seine Einstellungen geändert wurden</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>This model is being loaded</source>
      <translation>Dieses Modell wird gerade geladen</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>{tokens} of prompt</source>
      <translation>{tokens} Prompt</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>{n_active} at work</source>
      <translation>{n_active} in Arbeit</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>idle</source>
      <translation>untätig</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>Who asks, how urgent it is, and how fast the reply comes.</source>
      <translation>Wer fragt, wie dringend es ist und wie schnell die Antwort kommt.</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>Nothing runs or waits.</source>
      <translation>Nichts läuft oder wartet.</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>Models in memory</source>
      <translation>Modelle im Speicher</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>A model is loaded as soon as a program asks for it.</source>
      <translation>Ein Modell wird geladen, sobald ein Programm es verlangt.</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>No model is loaded.</source>
      <translation>Kein Modell ist geladen.</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>Model to load</source>
      <translation>Zu ladendes Modell</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>Load</source>
      <translation>Laden</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>Log</source>
      <translation>Protokoll</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>What the server noted last, the newest below.</source>
      <translation>Was der Server zuletzt notiert hat, das Neueste unten.</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>The log is empty.</source>
      <translation>Das Protokoll ist leer.</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>Copy the log</source>
      <translation>Das Protokoll kopieren</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>{n_inputs:,} texts</source>
      <translation>{n_inputs:,} Texte</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>1 text</source>
      <translation>1 Text</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>This window</source>
      <translation>Dieses Fenster</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>Unload</source>
      <translation>Entladen</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>Load again</source>
      <translation>Erneut laden</translation>
    </message>
    <message>
      <location filename="../../ui/server/activity_view.py" />
      <source>Load this model now</source>
      <translation>Dieses Modell jetzt laden</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>It opens when the server has started.</source>
      <translation>Das gilt, sobald der Server gestartet ist.</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Every machine of this network that has a key can use the models. What it sends and gets is not encrypted: allow this only in a network that you trust.</source>
      <translation>Jeder Rechner dieses Netzes, der einen Schlüssel hat, kann die Modelle nutzen. Was er sendet und bekommt, ist nicht verschlüsselt: Erlaube das nur in einem Netz, dem du vertraust.</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Off: only this window uses the models.</source>
      <translation>Aus: Nur dieses Fenster nutzt die Modelle.</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>On while this window is open.</source>
      <translation>An, solange dieses Fenster offen ist.</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>uses models</source>
      <translation>nutzt Modelle</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>manages models</source>
      <translation>verwaltet Modelle</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Allow managing</source>
      <translation>Verwalten erlauben</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Disallow managing</source>
      <translation>Verwalten verbieten</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Programs that have the present key are refused until they get the new one.</source>
      <translation>Programme mit dem jetzigen Schlüssel werden abgewiesen, bis sie den neuen haben.</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Programs that have it are refused from now on. It cannot be brought back; another can be made.</source>
      <translation>Programme, die ihn haben, werden ab jetzt abgewiesen. Er lässt sich nicht zurückholen, aber du kannst einen neuen machen.</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>used last on {day}</source>
      <translation>zuletzt benutzt am {day}</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>not used yet</source>
      <translation>noch nicht benutzt</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>{may}, made on {day}, {used}</source>
      <translation>{may}, erstellt am {day}, {used}</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Use the models in other programs</source>
      <translation>Die Modelle in anderen Programmen nutzen</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Editors, agents and scripts on this machine.</source>
      <translation>Editoren, Agenten und Skripte auf diesem Rechner.</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Let them use the models</source>
      <translation>Die Modelle für sie freigeben</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Let other programs use this server</source>
      <translation>Andere Programme diesen Server nutzen lassen</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Also from other machines in this network</source>
      <translation>Auch von anderen Rechnern in diesem Netz</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Also while the window is closed</source>
      <translation>Auch bei geschlossenem Fenster</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Closing it leaves an icon in the tray</source>
      <translation>Beim Schließen bleibt ein Symbol in der Leiste</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Key</source>
      <translation>Schlüssel</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Port</source>
      <translation>Port</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Programs keep the address: change it only where another program has this port</source>
      <translation>Programme merken sich die Adresse: Ändere ihn nur, wo ein anderes Programm diesen Port hat</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Web pages</source>
      <translation>Webseiten</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>none, or as https://example.com</source>
      <translation>keine, oder etwa https://example.com</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Pages of these addresses may use the server from a browser, with the key; several with commas</source>
      <translation>Seiten dieser Adressen dürfen den Server aus einem Browser benutzen, mit dem Schlüssel; mehrere mit Kommas</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>New key</source>
      <translation>Neuer Schlüssel</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Make another key; programs that have the old one are refused</source>
      <translation>Einen anderen Schlüssel machen; Programme mit dem alten werden abgewiesen</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Connect a program</source>
      <translation>Ein Programm verbinden</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>With this server's address, key and model: copy it as it is.</source>
      <translation>Mit Adresse, Schlüssel und Modell dieses Servers: Kopiere es, wie es ist.</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Client</source>
      <translation>Programm</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>The program that is to use this server</source>
      <translation>Das Programm, das diesen Server nutzen soll</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Copy this text</source>
      <translation>Diesen Text kopieren</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Show the key in this text</source>
      <translation>Den Schlüssel in diesem Text zeigen</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Hide the key in this text</source>
      <translation>Den Schlüssel in diesem Text verbergen</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>What to enter there</source>
      <translation>Was dort einzugeben ist</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Keys for others</source>
      <translation>Schlüssel für andere</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>A key of its own for each person or machine, so that one can be taken back alone. It uses models, and manages them only if you allow that.</source>
      <translation>Für jede Person oder jeden Rechner ein eigener Schlüssel, damit er allein zurückgenommen werden kann. Er nutzt Modelle und verwaltet sie nur, wenn du es erlaubst.</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Keys</source>
      <translation>Schlüssel</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>No keys yet.</source>
      <translation>Noch keine Schlüssel.</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Whose key, as “laptop” or “Ana”</source>
      <translation>Wessen Schlüssel, etwa „Laptop“ oder „Ana“</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Whose key</source>
      <translation>Wessen Schlüssel</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Make a key</source>
      <translation>Schlüssel erstellen</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Make a key of this name</source>
      <translation>Einen Schlüssel dieses Namens erstellen</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Copy the key</source>
      <translation>Den Schlüssel kopieren</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Make another key?</source>
      <translation>Einen anderen Schlüssel erstellen?</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>{sentence} Choose another port below and switch it on again.</source>
      <translation>{sentence} Wähle unten einen anderen Port und schalte ihn wieder ein.</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>The key “{name}”, which is shown this once:
{new}</source>
      <translation>Der Schlüssel „{name}“, der nur dieses eine Mal gezeigt wird:
{new}</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Programs that have it can then load, unload, download, change and remove models.</source>
      <translation>Programme, die ihn haben, können Modelle dann laden, entladen, herunterladen, ändern und entfernen.</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Revoke the key “{name}”?</source>
      <translation>Den Schlüssel „{name}“ zurücknehmen?</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Revoke</source>
      <translation>Zurücknehmen</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Address in the network</source>
      <translation>Adresse im Netz</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Use port {port}</source>
      <translation>Port {port} nehmen</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Switch the server on first. {place}</source>
      <translation>Schalte zuerst den Server ein. {place}</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Give the key a name first.</source>
      <translation>Gib dem Schlüssel zuerst einen Namen.</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>Let the key “{name}” manage models?</source>
      <translation>Den Schlüssel „{name}“ Modelle verwalten lassen?</translation>
    </message>
    <message>
      <location filename="../../ui/server/connect_view.py" />
      <source>In the network</source>
      <translation>Im Netz</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>A worker is another machine with Slipstream that lends its memory and its GPU to a model that fits neither machine alone. In a terminal there, in Slipstream's folder, this command prints its address and a token:</source>
      <translation>Ein Worker ist ein anderer Rechner mit Slipstream, der seinen Speicher und seine GPU einem Modell leiht, das in keinen der beiden allein passt. Dort gibt dieser Befehl, in einem Terminal im Ordner von Slipstream, seine Adresse und ein Token aus:</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Add it here by that address. Then choose it in the settings of a model, in the library: “Also use worker”. What is computed crosses the network unencrypted, prompts and replies too: do this in a network that you trust.</source>
      <translation>Füge ihn hier mit dieser Adresse hinzu. Wähle ihn dann in den Einstellungen eines Modells in der Bibliothek: „Auch Worker nutzen“. Was gerechnet wird, geht unverschlüsselt durch das Netz, auch Prompts und Antworten: Tu das in einem Netz, dem du vertraust.</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Trying it…</source>
      <translation>Wird geprüft…</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>{name}: {free} free of {total}</source>
      <translation>{name}: {free} von {total} frei</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>{bandwidth:,.0f} MB/s</source>
      <translation>{bandwidth:,.0f} MB/s</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>used by {model}</source>
      <translation>von {model} genutzt</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Other servers</source>
      <translation>Andere Server</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Their models are in the list of models as NAME/MODEL: another Slipstream, vLLM, llama-server, or a service that speaks OpenAI's protocol. What you send to them leaves this machine.</source>
      <translation>Ihre Modelle stehen in der Liste der Modelle als NAME/MODELL: ein anderes Slipstream, vLLM, llama-server oder ein Dienst, der das Protokoll von OpenAI spricht. Was du an sie sendest, verlässt diesen Rechner.</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>None yet: add one by its address.</source>
      <translation>Noch keiner: Füge einen mit seiner Adresse hinzu.</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Add this server</source>
      <translation>Diesen Server hinzufügen</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Ask the server for its models, and keep it</source>
      <translation>Den Server nach seinen Modellen fragen und ihn behalten</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>A server needs a name and an address.</source>
      <translation>Ein Server braucht einen Namen und eine Adresse.</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Name of the other server</source>
      <translation>Name des anderen Servers</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>A name of your choice, as rack</source>
      <translation>Ein Name deiner Wahl, etwa rack</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Address of the other server</source>
      <translation>Adresse des anderen Servers</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Key of the other server</source>
      <translation>Schlüssel des anderen Servers</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Empty where it needs none</source>
      <translation>Leer, wo er keinen braucht</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Workers</source>
      <translation>Worker</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Command for the worker</source>
      <translation>Befehl für den Worker</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>None yet: add one by its address and its token.</source>
      <translation>Noch keiner: Füge einen mit Adresse und Token hinzu.</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Add this worker</source>
      <translation>Diesen Worker hinzufügen</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Try the worker with its token, and keep both</source>
      <translation>Den Worker mit seinem Token prüfen und beide behalten</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>A worker needs an address and its token.</source>
      <translation>Ein Worker braucht eine Adresse und sein Token.</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Address of the worker</source>
      <translation>Adresse des Workers</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Token</source>
      <translation>Token</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Token of the worker</source>
      <translation>Token des Workers</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>As it is shown there</source>
      <translation>Wie es dort gezeigt wird</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>used by another program</source>
      <translation>von einem anderen Programm genutzt</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>1 model</source>
      <translation>1 Modell</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>{n:,} models</source>
      <translation>{n:,} Modelle</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Its models leave the list, and its key is forgotten. Nothing changes on that server.</source>
      <translation>Seine Modelle verschwinden aus der Liste, und sein Schlüssel wird vergessen. Auf dem Server selbst ändert sich nichts.</translation>
    </message>
    <message>
      <location filename="../../ui/server/machines_view.py" />
      <source>Its token is forgotten. Nothing changes on that machine.</source>
      <translation>Sein Token wird vergessen. Auf dem Rechner selbst ändert sich nichts.</translation>
    </message>
    <message>
      <location filename="../../ui/server/server_page.py" />
      <source>Connect</source>
      <translation>Verbinden</translation>
    </message>
    <message>
      <location filename="../../ui/server/server_page.py" />
      <source>Activity</source>
      <translation>Aktivität</translation>
    </message>
    <message>
      <location filename="../../ui/server/server_page.py" />
      <source>Other machines</source>
      <translation>Andere Rechner</translation>
    </message>
    <message>
      <location filename="../../ui/server/snippets.py" />
      <source>A script, with this package: pip install openai</source>
      <translation>Ein Skript, mit diesem Paket: pip install openai</translation>
    </message>
    <message>
      <location filename="../../ui/server/snippets.py" />
      <source>A script, with this package: pip install anthropic</source>
      <translation>Ein Skript, mit diesem Paket: pip install anthropic</translation>
    </message>
    <message>
      <location filename="../../ui/server/snippets.py" />
      <source>A terminal on Linux or macOS</source>
      <translation>Ein Terminal unter Linux oder macOS</translation>
    </message>
    <message>
      <location filename="../../ui/server/snippets.py" />
      <source>A terminal on Windows</source>
      <translation>Ein Terminal unter Windows</translation>
    </message>
    <message>
      <location filename="../../ui/server/snippets.py" />
      <source>Run “Chat: Manage Language Models”, choose Add Models, then Custom Endpoint, and enter a name, the key and Chat Completions. In the file that opens, chatLanguageModels.json, put this in the place of what is behind “models”; leave its line with the key as it is.</source>
      <translation>Führe „Chat: Manage Language Models“ aus, wähle Add Models, dann Custom Endpoint, und gib einen Namen, den Schlüssel und Chat Completions an. In der Datei, die sich öffnet, chatLanguageModels.json, kommt das hier an die Stelle dessen, was hinter „models“ steht; die Zeile mit dem Schlüssel bleibt, wie sie ist.</translation>
    </message>
    <message>
      <location filename="../../ui/server/snippets.py" />
      <source>settings.json, by “zed: open settings file”. Zed asks for the key in its provider's settings, or takes it from the variable {variable}.</source>
      <translation>settings.json, über „zed: open settings file“. Zed fragt in den Einstellungen des Anbieters nach dem Schlüssel oder nimmt ihn aus der Variablen {variable}.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/computer_section.py" />
      <source>Keep running without the window</source>
      <translation>Ohne Fenster weiterlaufen</translation>
    </message>
    <message>
      <location filename="../../ui/settings/computer_section.py" />
      <source>In the desktop's menus</source>
      <translation>In den Menüs des Desktops</translation>
    </message>
    <message>
      <location filename="../../ui/settings/computer_section.py" />
      <source>This computer</source>
      <translation>Dieser Computer</translation>
    </message>
    <message>
      <location filename="../../ui/settings/computer_section.py" />
      <source>Desktop notifications</source>
      <translation>Mitteilungen auf dem Desktop</translation>
    </message>
    <message>
      <location filename="../../ui/settings/computer_section.py" />
      <source>When a download or a long reply ends, or a tool waits for you, while you look elsewhere.</source>
      <translation>Wenn ein Download oder eine lange Antwort endet oder ein Werkzeug auf dich wartet, während du woanders hinsiehst.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/computer_section.py" />
      <source>alerts messages</source>
      <translation>Benachrichtigungen Hinweise</translation>
    </message>
    <message>
      <location filename="../../ui/settings/computer_section.py" />
      <source>Start at login</source>
      <translation>Bei der Anmeldung starten</translation>
    </message>
    <message>
      <location filename="../../ui/settings/computer_section.py" />
      <source>Closing it leaves an icon in the tray, and other programs reach the models as before.</source>
      <translation>Beim Schließen bleibt ein Symbol in der Leiste, und andere Programme erreichen die Modelle wie zuvor.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/computer_section.py" />
      <source>This desktop has no tray, in which an icon could show that Slipstream still runs.</source>
      <translation>Dieser Desktop hat keine Leiste, in der ein Symbol zeigen könnte, dass Slipstream noch läuft.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/computer_section.py" />
      <source>Slipstream is among your programs, and opens .gguf files.</source>
      <translation>Slipstream ist unter deinen Programmen und öffnet .gguf-Dateien.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/computer_section.py" />
      <source>Adds Slipstream to your programs, with its icon, and lets it open .gguf files.</source>
      <translation>Fügt Slipstream mit seinem Symbol zu deinen Programmen hinzu und lässt es .gguf-Dateien öffnen.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/computer_section.py" />
      <source>The window opens when you log in to your desktop.</source>
      <translation>Das Fenster öffnet sich, wenn du dich an deinem Desktop anmeldest.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/computer_section.py" />
      <source>autostart startup boot</source>
      <translation>Autostart Hochfahren Systemstart</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_options.py" />
      <source>The server restarts with the new settings. What you send now waits for it.</source>
      <translation>Der Server startet mit den neuen Einstellungen neu. Was du jetzt sendest, wartet auf ihn.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_options.py" />
      <source>Replies at once</source>
      <translation>Antworten zugleich</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_options.py" />
      <source>How many requests are written at the same time; others wait. More need more memory for their texts.</source>
      <translation>Wie viele Anfragen zugleich geschrieben werden; andere warten. Mehr brauchen mehr Speicher für ihre Texte.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_options.py" />
      <source>How much of a chat the model sees, in tokens: a token is about three quarters of a word. A model's own settings hold where this is automatic.</source>
      <translation>Wie viel das Modell von einem Chat sieht, in Token: Ein Token ist etwa drei Viertel eines Wortes. Eigene Einstellungen eines Modells gelten, wo hier automatisch steht.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_options.py" />
      <source>Runs on</source>
      <translation>Läuft auf</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_options.py" />
      <source>Automatic uses every GPU there is and keeps the rest of a model on the processor.</source>
      <translation>Automatisch nutzt jede GPU und lässt den Rest eines Modells auf dem Prozessor.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_options.py" />
      <source>Guesses the next words and checks them in one step. It switches itself off where it would be slower.</source>
      <translation>Rät die nächsten Wörter und prüft sie in einem Schritt. Schaltet sich selbst ab, wo es langsamer wäre.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_options.py" />
      <source>Texts kept in memory</source>
      <translation>Im Speicher behaltene Texte</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_options.py" />
      <source>So that a chat goes on without being read again. Automatic takes a share of what is free.</source>
      <translation>Damit ein Chat weitergeht, ohne neu gelesen zu werden. Automatisch nimmt einen Teil dessen, was frei ist.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_options.py" />
      <source>Texts kept on disk</source>
      <translation>Auf der Platte behaltene Texte</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_options.py" />
      <source>The same after a restart. These files hold what was written in your chats; None writes nothing.</source>
      <translation>Dasselbe nach einem Neustart. Diese Dateien enthalten, was in deinen Chats stand; Keine schreibt nichts.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_options.py" />
      <source>4 (recommended)</source>
      <translation>4 (empfohlen)</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_options.py" />
      <source>Processor only</source>
      <translation>Nur der Prozessor</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_options.py" />
      <source>With a draft model</source>
      <translation>Mit einem Entwurfsmodell</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_options.py" />
      <source>Never</source>
      <translation>Nie</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_options.py" />
      <source>{size} GB</source>
      <translation>{size} GB</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_options.py" />
      <source>{size:,} tokens</source>
      <translation>{size:,} Token</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_section.py" />
      <source>The server still runs as it was started. A restart takes a few seconds. Replies that are being written stop there.</source>
      <translation>Der Server läuft noch, wie er gestartet wurde. Ein Neustart dauert einige Sekunden. Antworten, die gerade entstehen, bleiben dort stehen.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_section.py" />
      <source>Engine</source>
      <translation>Engine</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_section.py" />
      <source>Restart the server</source>
      <translation>Den Server neu starten</translation>
    </message>
    <message>
      <location filename="../../ui/settings/engine_section.py" />
      <source>{name} only</source>
      <translation>Nur {name}</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>{used} of {total}</source>
      <translation>{used} von {total}</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Folders</source>
      <translation>Ordner</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Open the folder of models</source>
      <translation>Den Ordner der Modelle öffnen</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Move…</source>
      <translation>Verschieben…</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Move the folder of models</source>
      <translation>Den Ordner der Modelle verschieben</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Open the folder of chats</source>
      <translation>Den Ordner der Chats öffnen</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Move the models to</source>
      <translation>Die Modelle verschieben nach</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Looking at {folder}…</source>
      <translation>Sieht sich {folder} an…</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source> {n_left} files could not be deleted in the old folder.</source>
      <translation> {n_left} Dateien ließen sich im alten Ordner nicht löschen.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Checking the copies in</source>
      <translation>Prüft die Kopien in</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Copying to</source>
      <translation>Kopiert nach</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Models</source>
      <translation>Modelle</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Looking for the folder…</source>
      <translation>Sucht den Ordner…</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>In one file, {chats}</source>
      <translation>In einer Datei, {chats}</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Models of other programs</source>
      <translation>Modelle anderer Programme</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Files of Ollama, LM Studio, Jan, GPT4All or your own are used where they are; nothing is copied.</source>
      <translation>Dateien von Ollama, LM Studio, Jan, GPT4All oder eigene werden verwendet, wo sie sind; nichts wird kopiert.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Copy the path</source>
      <translation>Pfad kopieren</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source> 1 file could not be deleted in the old folder.</source>
      <translation> Eine Datei ließ sich im alten Ordner nicht löschen.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>The models are in {folder} now.{left}</source>
      <translation>Die Modelle sind jetzt in {folder}.{left}</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Cancel the move</source>
      <translation>Das Verschieben abbrechen</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Downloads go to {models_folder}</source>
      <translation>Downloads landen in {models_folder}</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>{models_folder} cannot be made: {strerror}.</source>
      <translation>{models_folder} lässt sich nicht anlegen: {strerror}.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Forget</source>
      <translation>Vergessen</translation>
    </message>
    <message>
      <location filename="../../ui/settings/folder_section.py" />
      <source>Models of {kind}</source>
      <translation>Modelle von {kind}</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>English German translation</source>
      <translation>Englisch Deutsch Übersetzung Language</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>font zoom bigger letters</source>
      <translation>Schrift Schriftgröße Font Zoom größer Buchstaben</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>Teal</source>
      <translation>Petrol</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>Blue</source>
      <translation>Blau</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>Violet</source>
      <translation>Violett</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>Rose</source>
      <translation>Rosa</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>Amber</source>
      <translation>Bernstein</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>Graphite</source>
      <translation>Graphit</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>Light</source>
      <translation>Hell</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>Dark</source>
      <translation>Dunkel</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>High contrast</source>
      <translation>Hoher Kontrast</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>Appearance</source>
      <translation>Aussehen</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>Theme</source>
      <translation>Farbschema</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>High contrast draws edges and text as strong as they can be, light or dark.</source>
      <translation>Hoher Kontrast zeichnet Ränder und Text so stark wie möglich, hell oder dunkel.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>Accent</source>
      <translation>Akzent</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>The one colour beside grey; high contrast has its own.</source>
      <translation>Die eine Farbe neben Grau; hoher Kontrast hat seine eigene.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>Text size</source>
      <translation>Textgröße</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>Also Ctrl with + or −, and Ctrl+0 for 100%.</source>
      <translation>Auch Strg mit + oder −, und Strg+0 für 100 %.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>In new replies, words that were drafted and found right have a coloured background.</source>
      <translation>In neuen Antworten sind vorausgeratene Wörter, die stimmten, farbig hinterlegt.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>Language</source>
      <translation>Sprache</translation>
    </message>
    <message>
      <location filename="../../ui/settings/looks_section.py" />
      <source>Takes effect when Slipstream is started next.</source>
      <translation>Gilt, wenn Slipstream das nächste Mal gestartet wird.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>Slipstream sends no telemetry: nothing about you, your chats or your use leaves this machine. It asks the Hub when you search or download, and for a draft, by the model's name, when you open a model in the library. It asks other servers only where you add one. Links open in your browser after a question.</source>
      <translation>Slipstream sendet keine Telemetrie: Nichts über dich, deine Chats oder deine Nutzung verlässt diesen Rechner. Es fragt den Hub, wenn du suchst oder herunterlädst, und nach einem Entwurfsmodell, mit dem Namen des Modells, wenn du ein Modell in der Bibliothek öffnest. Andere Server fragt es nur, wo du einen hinzufügst. Links öffnen sich nach einer Frage in deinem Browser.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>Chats, models, their own settings, folders, your account and the start at login stay.</source>
      <translation>Chats, Modelle, deren eigene Einstellungen, Ordner, dein Konto und der Start bei der Anmeldung bleiben.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>Search settings</source>
      <translation>Einstellungen durchsuchen</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>Hub account</source>
      <translation>Hub-Konto</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>Reset…</source>
      <translation>Zurücksetzen…</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>Reset all settings</source>
      <translation>Alle Einstellungen zurücksetzen</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>What belongs to one model is set in the library, what belongs to one chat beside the chat (Ctrl+.), and keys, the port and the network on the page of the server.</source>
      <translation>Was zu einem Modell gehört, wird in der Bibliothek eingestellt, was zu einem Chat gehört, neben dem Chat (Strg+.), und Schlüssel, Port und Netzwerk auf der Seite des Servers.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>Reset all settings of this page?</source>
      <translation>Alle Einstellungen dieser Seite zurücksetzen?</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>Hugging Face Hub</source>
      <translation>Hugging Face Hub</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>An access token opens models whose licence has to be accepted. It is kept in the system's keyring. A proxy or another address is set here too.</source>
      <translation>Ein Zugangs-Token öffnet Modelle, deren Lizenz angenommen werden muss. Es liegt im Schlüsselbund des Systems. Auch ein Proxy oder eine andere Adresse wird hier eingestellt.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>login sign in token password HF</source>
      <translation>Login anmelden Token Passwort HF</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>No telemetry</source>
      <translation>Keine Telemetrie</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>All settings of this page</source>
      <translation>Alle Einstellungen dieser Seite</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>Resets appearance, notifications and the engine to what is recommended. Chats, models, their own settings, folders, your account and the start at login stay.</source>
      <translation>Setzt Aussehen, Mitteilungen und die Engine auf das zurück, was empfohlen ist. Chats, Modelle, deren eigene Einstellungen, Ordner, dein Konto und der Start bei der Anmeldung bleiben.</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>defaults factory standard</source>
      <translation>Standard Voreinstellung Werkseinstellungen</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>No setting like that</source>
      <translation>Keine solche Einstellung</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>Privacy</source>
      <translation>Privatsphäre</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>data offline internet</source>
      <translation>Datenschutz Daten offline Internet</translation>
    </message>
    <message>
      <location filename="../../ui/settings/settings_page.py" />
      <source>Show all settings</source>
      <translation>Alle Einstellungen zeigen</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Load a model first: choose one above the chat.</source>
      <translation>Lade zuerst ein Modell: Wähle eines über dem Chat.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Stopped.</source>
      <translation>Angehalten.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Is it the same model?</source>
      <translation>Ist es dasselbe Modell?</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>How fast memory and processor are, in some ten seconds: speeds are predicted from it</source>
      <translation>Wie schnell Speicher und Prozessor sind, in etwa zehn Sekunden: Daraus werden Geschwindigkeiten vorhergesagt</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Measures who drafts best for this model, a minute for each, and keeps the fastest</source>
      <translation>Misst, wer für dieses Modell am besten vorausrät, je eine Minute, und behält das Schnellste</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Answers the same questions with drafts and without, and compares the texts; takes some minutes</source>
      <translation>Beantwortet dieselben Fragen mit und ohne Entwürfe und vergleicht die Texte; dauert einige Minuten</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Waits for a reply that is being written…</source>
      <translation>Wartet auf eine Antwort, die gerade entsteht…</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Waits for a model that is being loaded…</source>
      <translation>Wartet auf ein Modell, das gerade geladen wird…</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Loading {name}…</source>
      <translation>{name} wird geladen…</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Measuring {name}…</source>
      <translation>{name} wird gemessen…</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Stories</source>
      <translation>Geschichten</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Renaming</source>
      <translation>Umbenennen</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Copying</source>
      <translation>Abschreiben</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Guessing was right for {n_accepted:,} of {tokens}.</source>
      <translation>Richtig geraten wurde bei {n_accepted:,} von {tokens}.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>The median of {n_timed:,} timed replies, sampled ones too, is {median:.2f} times as fast as plain decoding. Each bar is the median of one kind, without sampled ones.</source>
      <translation>Der Median von {n_timed:,} gemessenen Antworten, auch gewürfelten, ist {median:.2f}-mal so schnell wie einfaches Decodieren. Jeder Balken ist der Median einer Art, ohne gewürfelte.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Nothing was drafted, since plain decoding is faster here: there was nothing to compare.</source>
      <translation>Nichts wurde vorausgeraten, denn einfaches Decodieren ist hier schneller: Es gab nichts zu vergleichen.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Drafting changed nothing: all {n_all:,} replies are the same, token for token.</source>
      <translation>Vorausraten ändert nichts: Alle {n_all:,} Antworten sind gleich, Token für Token.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>End the measurement; what is known already is kept</source>
      <translation>Die Messung beenden; was schon bekannt ist, bleibt</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Do not wait: figures measured beside other work may be wrong</source>
      <translation>Nicht warten: Zahlen, die neben anderer Arbeit gemessen werden, können falsch sein</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>How fast replies are with drafts, against plain decoding</source>
      <translation>Wie schnell Antworten mit Entwürfen sind, gegenüber einfachem Decodieren</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Measured: memory reads {bandwidth} a second. Predictions use the new figures from now on.</source>
      <translation>Gemessen: Der Speicher liest {bandwidth} in der Sekunde. Vorhersagen benutzen ab jetzt die neuen Zahlen.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>{n_same:,} of {n_all:,} replies are the same. Where the others part, two tokens were about equally likely, so rounding decided.</source>
      <translation>{n_same:,} von {n_all:,} Antworten sind gleich. Wo sich die anderen trennen, waren zwei Token etwa gleich wahrscheinlich, und Rundung entschied.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Drafting CHANGED what the model says: {n_wrong:,} of {n_all:,} replies have a token that plain decoding was far from choosing.</source>
      <translation>Vorausraten hat GEÄNDERT, was das Modell sagt: {n_wrong:,} von {n_all:,} Antworten haben ein Token, das einfaches Decodieren bei weitem nicht gewählt hätte.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Result</source>
      <translation>Ergebnis</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Measured. Predictions use these figures from now on.</source>
      <translation>Gemessen. Die Vorhersagen rechnen von nun an mit diesen Werten.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/measuring_card.py" />
      <source>Comparing replies with drafts and without…</source>
      <translation>Vergleicht Antworten mit und ohne Entwürfe…</translation>
    </message>
    <message>
      <location filename="../../ui/speed/plots.py" />
      <source>−3 min</source>
      <translation>−3 min</translation>
    </message>
    <message>
      <location filename="../../ui/speed/plots.py" />
      <source>now</source>
      <translation>jetzt</translation>
    </message>
    <message>
      <location filename="../../ui/speed/plots.py" />
      <source>{now:.1f} {unit} now, {value:.1f} at most</source>
      <translation>{now:.1f} {unit} jetzt, höchstens {value:.1f}</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>Show in the library</source>
      <translation>In der Bibliothek zeigen</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>limited by memory speed</source>
      <translation>begrenzt vom Speichertempo</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>limited by computing</source>
      <translation>begrenzt vom Rechnen</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>limited by work between steps</source>
      <translation>begrenzt von Arbeit zwischen Schritten</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>the limit is not known yet</source>
      <translation>die Grenze ist noch nicht bekannt</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>{when} guessing was right for {n_accepted:,} of {tokens}</source>
      <translation>{when} wurde bei {n_accepted:,} von {tokens} richtig geraten</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>Drafting is being tried: {share}, which does not pay yet ({speedup:.2f} times plain steps).</source>
      <translation>Vorausraten wird probiert: {share}, was sich noch nicht lohnt ({speedup:.2f} mal einfache Schritte).</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>{n_waiting} wait for a place.</source>
      <translation>{n_waiting} warten auf einen Platz.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>Drafting is on: {share}.</source>
      <translation>Vorausraten ist an: {share}.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>Drafting is on: {share}, which makes it {speedup:.2f} times as fast as plain steps.</source>
      <translation>Vorausraten ist an: {share}, damit ist es {speedup:.2f} mal so schnell wie einfache Schritte.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>: up to {n_rows} rows take hardly longer than one</source>
      <translation>: Bis zu {n_rows} Zeilen dauern kaum länger als eine</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>, which takes longer</source>
      <translation>, was länger dauert</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>{n_active} requests share each step{how}.</source>
      <translation>{n_active} Anfragen teilen sich jeden Schritt{how}.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>{name} is loaded, and drafts when that pays.</source>
      <translation>{name} ist geladen und rät voraus, wenn sich das lohnt.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>Nothing was drafted for the last reply: where it would not be faster, drafting is left out.</source>
      <translation>Bei der letzten Antwort wurde nichts geraten: Wo das nicht schneller wäre, entfällt es.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>Nothing is drafted just now: where it would not be faster, drafting is left out.</source>
      <translation>Gerade wird nichts geraten: Wo das nicht schneller wäre, entfällt es.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>1 waits for a place.</source>
      <translation>1 wartet auf einen Platz.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>“Measure this machine” below: then gains can be predicted.</source>
      <translation>„Diesen Rechner messen“ unten: Dann lassen sich Gewinne vorhersagen.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>Several requests at once: {cheap_rows} share a step. For all together</source>
      <translation>Mehrere Anfragen zugleich: {cheap_rows} teilen sich einen Schritt. Für alle zusammen</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>A small model that guesses ahead.</source>
      <translation>Ein kleines Modell, das vorausrät.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>A smaller copy ({type}), of which each token reads less.</source>
      <translation>Eine kleinere Kopie ({type}), von der jedes Token weniger liest.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>Let {name} guess ahead.</source>
      <translation>{name} vorausraten lassen.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/sentences.py" />
      <source>Let it draft</source>
      <translation>Vorausraten lassen</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>The next reply will show it.</source>
      <translation>Die nächste Antwort wird es zeigen.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Memory read, GB per second</source>
      <translation>Gelesener Speicher, GB je Sekunde</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Memory read, GB per second; dashed is the most that was measured</source>
      <translation>Gelesener Speicher, GB je Sekunde; gestrichelt ist das Höchste, was gemessen wurde</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>tokens per second</source>
      <translation>Token je Sekunde</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Memory read</source>
      <translation>Gelesener Speicher</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>GB per second</source>
      <translation>GB je Sekunde</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>{limit}: it reads {of_peak}{share}.</source>
      <translation>{limit}: Gelesen werden {of_peak}{share}.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Tokens written per second, the last three minutes</source>
      <translation>Geschriebene Token je Sekunde, die letzten drei Minuten</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Gains are estimates.</source>
      <translation>Gewinne sind Schätzungen.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>This machine</source>
      <translation>Dieser Rechner</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Asking…</source>
      <translation>Fragt…</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Measure</source>
      <translation>Messen</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>How fast this machine is, who drafts best, and whether drafts leave replies as they are.</source>
      <translation>Wie schnell dieser Rechner ist, wer am besten entwirft, und ob Entwürfe die Antworten lassen, wie sie sind.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>tokens per second, reading the prompt</source>
      <translation>Token je Sekunde, beim Lesen des Prompts</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>{read} of {peak:,.1f} GB/s measured</source>
      <translation>{read} von {peak:,.1f} GB/s gemessen</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>{read} GB/s</source>
      <translation>{read} GB/s</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>{read} GB/s from the processor's cache</source>
      <translation>{read} GB/s aus dem Cache des Prozessors</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>, {peak_share:.0%} of what memory can</source>
      <translation>, {peak_share:.0%} von dem, was der Speicher kann</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Processor</source>
      <translation>Prozessor</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Why</source>
      <translation>Warum</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>What would help</source>
      <translation>Was helfen würde</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Guessed tokens that were right since the model was loaded, by place</source>
      <translation>Seit dem Laden des Modells richtig geratene Token, nach Stelle</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Acceptance by depth</source>
      <translation>Annahme nach Tiefe</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>{what}, average of the last reply</source>
      <translation>{what}, im Mittel der letzten Antwort</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Token {depth}</source>
      <translation>Token {depth}</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>{right:.0%} of {guessed:,}</source>
      <translation>{right:.0%} von {guessed:,}</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>The lines cannot be drawn: {reason}. All else goes on.</source>
      <translation>Die Linien lassen sich nicht zeichnen: {reason}. Alles andere geht weiter.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Weights</source>
      <translation>Gewichte</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Kept prompts</source>
      <translation>Gemerkte Prompts</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Other programs</source>
      <translation>Andere Programme</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Free</source>
      <translation>Frei</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Nothing that Slipstream knows of.</source>
      <translation>Nichts, wovon Slipstream weiß.</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>{cpu:.0%} busy</source>
      <translation>{cpu:.0%} beschäftigt</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Power</source>
      <translation>Leistung</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>{watts:.0f} W, the processor</source>
      <translation>{watts:.0f} W, der Prozessor</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>{load:.0%} busy</source>
      <translation>{load:.0%} beschäftigt</translation>
    </message>
    <message>
      <location filename="../../ui/speed/speed_page.py" />
      <source>Load a model first.</source>
      <translation>Lade zuerst ein Modell.</translation>
    </message>
    <message>
      <location filename="../../ui/widgets/action_rows.py" />
      <source>Progress</source>
      <translation>Fortschritt</translation>
    </message>
    <message>
      <location filename="../../ui/widgets/fields.py" />
      <source>Copy the {lower}</source>
      <translation>{lower} kopieren</translation>
    </message>
    <message>
      <location filename="../../ui/widgets/fields.py" />
      <source>Show the {lower}</source>
      <translation>{lower} zeigen</translation>
    </message>
    <message>
      <location filename="../../ui/widgets/fields.py" />
      <source>Hide the {lower}</source>
      <translation>{lower} verbergen</translation>
    </message>
    <message>
      <location filename="../../ui/widgets/fields.py" />
      <source>Clear</source>
      <translation>Leeren</translation>
    </message>
    <message>
      <location filename="../../ui/widgets/page_layout.py" />
      <source>{name} (Ctrl+{number})</source>
      <translation>{name} (Strg+{number})</translation>
    </message>
    <message>
      <location filename="../../ui/widgets/state_pane.py" />
      <source>In progress</source>
      <translation>In Arbeit</translation>
    </message>
    <message>
      <location filename="../../ui/window/background.py" />
      <source>Slipstream still runs</source>
      <translation>Slipstream läuft noch</translation>
    </message>
    <message>
      <location filename="../../ui/window/background.py" />
      <source>Other programs reach its models as before. Its icon in the tray opens it, or quits it.</source>
      <translation>Andere Programme erreichen seine Modelle wie zuvor. Sein Symbol in der Leiste öffnet oder beendet es.</translation>
    </message>
    <message>
      <location filename="../../ui/window/background.py" />
      <source>The reply failed</source>
      <translation>Die Antwort ist fehlgeschlagen</translation>
    </message>
    <message>
      <location filename="../../ui/window/background.py" />
      <source>The reply is there</source>
      <translation>Die Antwort ist da</translation>
    </message>
    <message>
      <location filename="../../ui/window/background.py" />
      <source>A tool waits for your permission</source>
      <translation>Ein Werkzeug wartet auf deine Erlaubnis</translation>
    </message>
    <message>
      <location filename="../../ui/window/background.py" />
      <source>{repo_id} can be used.</source>
      <translation>{repo_id} kann benutzt werden.</translation>
    </message>
    <message>
      <location filename="../../ui/window/background.py" />
      <source>The download is complete</source>
      <translation>Der Download ist fertig</translation>
    </message>
    <message>
      <location filename="../../ui/window/background.py" />
      <source>it can go on.</source>
      <translation>er kann weitergehen.</translation>
    </message>
    <message>
      <location filename="../../ui/window/background.py" />
      <source>The download stopped</source>
      <translation>Der Download ist stehen geblieben</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>split side by side two</source>
      <translation>teilen nebeneinander zwei geteilt</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Search the chat to open beside this one</source>
      <translation>Chat suchen, der neben diesem geöffnet wird</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Rename chat</source>
      <translation>Chat umbenennen</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Show the models</source>
      <translation>Die Modelle zeigen</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Folder renamed</source>
      <translation>Ordner umbenannt</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Folder removed</source>
      <translation>Ordner entfernt</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Undone</source>
      <translation>Rückgängig gemacht</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>{name} answers from now on</source>
      <translation>{name} antwortet ab jetzt</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Find one</source>
      <translation>Eines finden</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>There is no model here that can race</source>
      <translation>Hier ist kein Modell, das antreten kann</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Drafted words of new replies are tinted.</source>
      <translation>Entwürfe in neuen Antworten werden gefärbt.</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Drafted words are no longer tinted.</source>
      <translation>Entwürfe werden nicht mehr gefärbt.</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Chat archived</source>
      <translation>Chat archiviert</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Chat deleted</source>
      <translation>Chat gelöscht</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Take a prompt</source>
      <translation>Einen Prompt nehmen</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Continue a reply that was cut</source>
      <translation>Eine abgeschnittene Antwort fortsetzen</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Edit what was said last</source>
      <translation>Bearbeiten, was zuletzt gesagt wurde</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Earlier version of a message</source>
      <translation>Frühere Fassung einer Nachricht</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Later version of a message</source>
      <translation>Spätere Fassung einer Nachricht</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Race two ways to answer</source>
      <translation>Wettlauf: zwei Wege zur Antwort</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Show or hide the chats</source>
      <translation>Die Chats zeigen oder verbergen</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Show or hide the settings of the chat</source>
      <translation>Die Einstellungen des Chats zeigen oder verbergen</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Rename this chat…</source>
      <translation>Diesen Chat umbenennen…</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Put this chat into the archive</source>
      <translation>Diesen Chat ins Archiv legen</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Delete this chat</source>
      <translation>Diesen Chat löschen</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Export this chat…</source>
      <translation>Diesen Chat exportieren…</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>New chat beside this one</source>
      <translation>Neuer Chat neben diesem</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Open a chat beside this one</source>
      <translation>Einen Chat neben diesem öffnen</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Go to the other chat</source>
      <translation>Zum anderen Chat</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Close the chat beside</source>
      <translation>Den Chat daneben schließen</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Undo archiving or deleting a chat, or changing a folder</source>
      <translation>Archivieren oder Löschen eines Chats oder Ändern eines Ordners rückgängig machen</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Nothing has been said in this chat yet</source>
      <translation>In diesem Chat wurde noch nichts gesagt</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>conversation start</source>
      <translation>Gespräch Unterhaltung beginnen starten</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>switch change load unload eject LLM</source>
      <translation>wechseln ändern auswählen laden entladen auswerfen LLM</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>upload document PDF image picture photo</source>
      <translation>hochladen Upload Dokument PDF Bild Foto</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>template</source>
      <translation>Vorlage</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>regenerate retry repeat redo</source>
      <translation>neu erneut wiederholen nochmal regenerieren</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>cancel end abort</source>
      <translation>abbrechen anhalten Stopp stoppen beenden</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>change correct message</source>
      <translation>ändern korrigieren Nachricht</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>branch</source>
      <translation>Zweig Verzweigung</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>highlight colour color accepted speculative</source>
      <translation>hervorheben Farbe angenommen spekulativ</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>compare benchmark models speed</source>
      <translation>vergleichen Vergleich Benchmark Modelle Tempo Geschwindigkeit</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>templates variables library system instructions role persona</source>
      <translation>Vorlagen Variablen Bibliothek System Anweisungen Rolle Persona Systemprompt</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>tools plugins extensions functions web search internet agent</source>
      <translation>Werkzeuge Tools Plugins Erweiterungen Funktionen Websuche Internet Agent</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>sidebar history list</source>
      <translation>Seitenleiste Verlauf Liste</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>temperature top-k top-p min-p penalty seed random sampling creative creativity maximum max tokens length thinking reasoning system prompt instructions role</source>
      <translation>Temperatur Top-k Top-p Min-p Strafe Seed Zufall Sampling kreativ Kreativität höchstens max Token Länge Denken Nachdenken Systemprompt Anweisungen Rolle</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>title name</source>
      <translation>Titel Name</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>put away</source>
      <translation>archivieren weglegen</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>remove erase clear trash bin</source>
      <translation>entfernen leeren Papierkorb wegwerfen</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>save copy share Markdown JSON</source>
      <translation>Export speichern sichern kopieren teilen Markdown JSON</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>restore deleted archived removed</source>
      <translation>wiederherstellen zurückholen gelöscht archiviert entfernt</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>save backup Markdown JSON zip</source>
      <translation>Export speichern sichern Backup Sicherung Markdown JSON zip</translation>
    </message>
    <message>
      <location filename="../../ui/window/chat_area.py" />
      <source>Show the model</source>
      <translation>Modell zeigen</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>Chats cannot be saved right now. Quit all the same?</source>
      <translation>Chats können gerade nicht gespeichert werden. Trotzdem beenden?</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>Open Slipstream</source>
      <translation>Slipstream öffnen</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>Quit</source>
      <translation>Beenden</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>Other programs cannot use this server. {problem}</source>
      <translation>Andere Programme können diesen Server nicht nutzen. {problem}</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>What could not be saved is lost.</source>
      <translation>Was nicht gespeichert werden konnte, geht verloren.</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>Ask a hard question</source>
      <translation>Eine schwere Frage stellen</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>Search this page</source>
      <translation>Diese Seite durchsuchen</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>Command palette</source>
      <translation>Befehlspalette</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>Larger text</source>
      <translation>Größerer Text</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>Smaller text</source>
      <translation>Kleinerer Text</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>Text of the usual size</source>
      <translation>Text in üblicher Größe</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>Show the server</source>
      <translation>Server zeigen</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>Page</source>
      <translation>Seite</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>new get download install Hugging Face LLM AI</source>
      <translation>neu holen herunterladen Download installieren suchen Hugging Face LLM KI</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>deep think reasoning research</source>
      <translation>tief tiefe gründlich nachdenken Deep Recherche forschen</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>find</source>
      <translation>finden</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>hotkeys keys help</source>
      <translation>Tasten Tastatur Hotkeys Shortcuts Hilfe</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>exit close end</source>
      <translation>schließen verlassen Ende</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>Setting</source>
      <translation>Einstellung</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>Theme: {name}</source>
      <translation>Farbschema: {name}</translation>
    </message>
    <message>
      <location filename="../../ui/window/main_window.py" />
      <source>mode night colour color</source>
      <translation>Modus Nacht Farben Theme</translation>
    </message>
    <message>
      <location filename="../../ui/window/rail.py" />
      <source>conversation</source>
      <translation>Gespräch Unterhaltung</translation>
    </message>
    <message>
      <location filename="../../ui/window/rail.py" />
      <source>Library</source>
      <translation>Bibliothek</translation>
    </message>
    <message>
      <location filename="../../ui/window/rail.py" />
      <source>models downloads delete remove disk storage quantise quantize convert shrink pair draft GGUF</source>
      <translation>Modelle Downloads löschen entfernen Platte Festplatte Speicherplatz quantisieren verkleinern umwandeln Paar Entwurf GGUF</translation>
    </message>
    <message>
      <location filename="../../ui/window/rail.py" />
      <source>fast slow performance benchmark measure test verify GPU CPU cores graphics card processor memory RAM VRAM bandwidth tokens</source>
      <translation>schnell langsam Leistung Benchmark messen testen prüfen GPU CPU Kerne Grafikkarte Prozessor Speicher Arbeitsspeicher RAM VRAM Bandbreite Tokens</translation>
    </message>
    <message>
      <location filename="../../ui/window/rail.py" />
      <source>Server</source>
      <translation>Server</translation>
    </message>
    <message>
      <location filename="../../ui/window/rail.py" />
      <source>API key endpoint address URL localhost port network LAN phone OpenAI Anthropic VSCode editor code logs errors requests remote workers cluster</source>
      <translation>API Schlüssel Endpunkt Adresse URL localhost Port Netzwerk LAN Handy OpenAI Anthropic VSCode Editor Code Protokoll Logs Fehler Anfragen entfernt Worker Cluster</translation>
    </message>
    <message>
      <location filename="../../ui/window/rail.py" />
      <source>batch queue file background deep question</source>
      <translation>Batch Stapel Aufträge Warteschlange Datei Hintergrund tief Deep Frage</translation>
    </message>
    <message>
      <location filename="../../ui/window/rail.py" />
      <source>Settings</source>
      <translation>Einstellungen</translation>
    </message>
    <message>
      <location filename="../../ui/window/rail.py" />
      <source>preferences options configuration</source>
      <translation>Optionen Konfiguration Voreinstellungen</translation>
    </message>
    <message>
      <location filename="../../ui/window/rail.py" />
      <source>{name}, shown</source>
      <translation>{name}, angezeigt</translation>
    </message>
    <message>
      <location filename="../../ui/window/server_link.py" />
      <source>The server that runs the models cannot start</source>
      <translation>Der Server, der die Modelle ausführt, kann nicht starten</translation>
    </message>
    <message>
      <location filename="../../ui/window/server_link.py" />
      <source>It may be what you chose for the engine in the settings: starting as recommended resets that.</source>
      <translation>Es kann an dem liegen, was in den Einstellungen für die Engine gewählt ist: Der empfohlene Start setzt das zurück.</translation>
    </message>
    <message>
      <location filename="../../ui/window/server_link.py" />
      <source>{what}: “{words}”</source>
      <translation>{what}: „{words}“</translation>
    </message>
    <message>
      <location filename="../../ui/window/server_link.py" />
      <source>The server stopped and is starting again. What you send now waits for it.</source>
      <translation>Der Server ist ausgefallen und startet neu. Was du jetzt sendest, wartet auf ihn.</translation>
    </message>
    <message>
      <location filename="../../ui/window/server_link.py" />
      <source>Start as recommended</source>
      <translation>Wie empfohlen starten</translation>
    </message>
    <message>
      <location filename="../../ui/window/storage_notice.py" />
      <source>A part of the file with your chats is damaged. It is left as it is, and you can go on. The next start keeps it and offers to bring back every chat that can be read: do that soon.</source>
      <translation>Ein Teil der Datei mit deinen Chats ist beschädigt. Sie bleibt, wie sie ist, und du kannst weitermachen. Der nächste Start hebt sie auf und bietet an, jeden lesbaren Chat zurückzuholen: tu das bald.</translation>
    </message>
    <message>
      <location filename="../../ui/window/storage_notice.py" />
      <source>Reading the chats of {source}…</source>
      <translation>Liest die Chats von {source}…</translation>
    </message>
    <message>
      <location filename="../../ui/window/storage_notice.py" />
      <source>Save what can be read of the damaged file of {day}</source>
      <translation>Retten, was in der beschädigten Datei vom {day} lesbar ist</translation>
    </message>
    <message>
      <location filename="../../ui/window/storage_notice.py" />
      <source>Take the chats of the backup of {day}</source>
      <translation>Die Chats der Sicherung vom {day} nehmen</translation>
    </message>
    <message>
      <location filename="../../ui/window/storage_notice.py" />
      <source>No file of lost chats is here any more</source>
      <translation>Es gibt hier keine Datei verlorener Chats mehr</translation>
    </message>
    <message>
      <location filename="../../ui/window/storage_notice.py" />
      <source>Bringing back the chats of {source}…  {share:.0%}</source>
      <translation>Die Chats aus {source} werden zurückgeholt…  {share:.0%}</translation>
    </message>
    <message>
      <location filename="../../ui/window/storage_notice.py" />
      <source>{source} has no chat that is not here and can be read.</source>
      <translation>{source} hat keinen Chat, der nicht hier ist und sich lesen lässt.</translation>
    </message>
    <message>
      <location filename="../../ui/window/storage_notice.py" />
      <source>1 chat is back</source>
      <translation>1 Chat ist zurück</translation>
    </message>
    <message>
      <location filename="../../ui/window/storage_notice.py" />
      <source>{n_chats:,} chats are back</source>
      <translation>{n_chats:,} Chats sind zurück</translation>
    </message>
    <message>
      <location filename="../../ui/window/storage_notice.py" />
      <source>Stopped. {back}, and the file that they come from is kept.</source>
      <translation>Abgebrochen. {back}, und die Datei, aus der sie kommen, bleibt erhalten.</translation>
    </message>
    <message>
      <location filename="../../ui/window/storage_notice.py" />
      <source>A part of the file with your chats is damaged. It is left as it is. For the next start to mend that, a note is needed in {parent}, which cannot be written: {reason}</source>
      <translation>Ein Teil der Datei mit deinen Chats ist beschädigt. Sie bleibt, wie sie ist. Damit der nächste Start das behebt, ist eine Notiz in {parent} nötig, die sich nicht schreiben lässt: {reason}</translation>
    </message>
    <message>
      <location filename="../../ui/window/storage_notice.py" />
      <source>Other ways…</source>
      <translation>Andere Wege…</translation>
    </message>
    <message>
      <location filename="../../app/doctor/checks.py" />
      <source>{existing} is not a folder</source>
      <translation>{existing} ist kein Ordner</translation>
    </message>
    <message>
      <location filename="../../app/doctor/checks.py" />
      <source>It will be measured again next time: {folder} cannot be written ({reason}).</source>
      <translation>Beim nächsten Mal wird neu gemessen: In {folder} kann nicht geschrieben werden ({reason}).</translation>
    </message>
    <message>
      <location filename="../../app/doctor/checks.py" />
      <source>{existing} cannot be written</source>
      <translation>In {existing} kann nicht geschrieben werden</translation>
    </message>
    <message>
      <location filename="../../app/doctor/checks.py" />
      <source>llama.cpp crashed when it was asked for its devices ({signal}).</source>
      <translation>llama.cpp ist abgestürzt, als es nach seinen Geräten gefragt wurde ({signal}).</translation>
    </message>
    <message>
      <location filename="../../app/doctor/checks.py" />
      <source>llama.cpp did not list its devices within {seconds} s.</source>
      <translation>llama.cpp hat seine Geräte nicht binnen {seconds} s genannt.</translation>
    </message>
    <message>
      <location filename="../../app/doctor/checks.py" />
      <source>llama.cpp cannot be asked for its devices: {reason}</source>
      <translation>llama.cpp kann nicht nach seinen Geräten gefragt werden: {reason}</translation>
    </message>
    <message>
      <location filename="../../app/doctor/checks.py" />
      <source>There is not enough memory to measure it.</source>
      <translation>Zum Messen ist nicht genug Speicher da.</translation>
    </message>
    <message>
      <location filename="../../app/doctor/self_test.py" />
      <source>Quit, delete the folder .venv in Slipstream's folder and start again: llama.cpp is built anew for this machine.</source>
      <translation>Beende Slipstream, lösche den Ordner .venv in seinem Ordner und starte neu: llama.cpp wird für diesen Rechner neu gebaut.</translation>
    </message>
    <message>
      <location filename="../../app/doctor/self_test.py" />
      <source>llama.cpp ended with signal {number} in the self-test. {advice}</source>
      <translation>llama.cpp endete im Selbsttest mit Signal {number}. {advice}</translation>
    </message>
    <message>
      <location filename="../../app/doctor/self_test.py" />
      <source>llama.cpp crashed in a test decode ({name}): it was built with instructions that this CPU does not run correctly (known for AMX with gcc 12). {advice}</source>
      <translation>llama.cpp ist im Selbsttest abgestürzt ({name}): Es wurde mit Befehlen gebaut, die diese CPU nicht richtig ausführt (bekannt von AMX mit gcc 12). {advice}</translation>
    </message>
    <message>
      <location filename="../../app/doctor/self_test.py" />
      <source>llama.cpp did not finish a test decode within {seconds} s. {advice}</source>
      <translation>llama.cpp hat den Selbsttest nicht binnen {seconds} s beendet. {advice}</translation>
    </message>
    <message>
      <location filename="../../app/fit_reports/fit_reports.py" />
      <source>It is judged for this machine alone. {alone}</source>
      <translation>Beurteilt ist es nur für diesen Rechner. {alone}</translation>
    </message>
    <message>
      <location filename="../../app/fit_reports/fit_reports.py" />
      <source>The token of the worker {worker} is not known here.</source>
      <translation>Das Token des Workers {worker} ist hier nicht bekannt.</translation>
    </message>
    <message>
      <location filename="../../app/jobs/pair_test/pair_test.py" />
      <source>Slipstream is at work on a load: beside it, the figures would be wrong. Measure when that is done.</source>
      <translation>Slipstream lädt gerade ein Modell: Daneben wären die Zahlen falsch. Miss, wenn das fertig ist.</translation>
    </message>
    <message>
      <location filename="../../app/jobs/pair_test/pair_test.py" />
      <source>Slipstream is at work on replies: beside it, the figures would be wrong. Measure when that is done.</source>
      <translation>Slipstream schreibt gerade Antworten: Daneben wären die Zahlen falsch. Miss, wenn das fertig ist.</translation>
    </message>
    <message>
      <location filename="../../app/jobs/pair_test/pair_test.py" />
      <source>There is nothing to test: {why} {pair} says what would fit.</source>
      <translation>Es gibt nichts zu testen: {why} {pair} sagt, was passen würde.</translation>
    </message>
    <message>
      <location filename="../../app/jobs/pair_test/pair_test.py" />
      <source>The test was ended by signal {number}.</source>
      <translation>Der Test wurde durch Signal {number} beendet.</translation>
    </message>
    <message>
      <location filename="../../app/jobs/pair_test/pair_test.py" />
      <source>The test ended with exit code {code}.</source>
      <translation>Der Test endete mit dem Code {code}.</translation>
    </message>
    <message>
      <location filename="../../app/jobs/pair_test/pair_test.py" />
      <source>The list of who drafts</source>
      <translation>Die Liste, wer Entwürfe macht,</translation>
    </message>
    <message>
      <location filename="../../app/jobs/pair_test/pair_test.py" />
      <source>The test was stopped.</source>
      <translation>Der Test wurde angehalten.</translation>
    </message>
    <message>
      <location filename="../../app/jobs/pair_test/trial.py" />
      <source>Its replies are too short to be timed.</source>
      <translation>Die Antworten sind zu kurz, um ihre Zeit zu messen.</translation>
    </message>
    <message>
      <location filename="../../app/jobs/pair_test/trial.py" />
      <source>{target} is no longer there.</source>
      <translation>{target} ist nicht mehr da.</translation>
    </message>
    <message>
      <location filename="../../app/jobs/program_run.py" />
      <source>It was stopped.</source>
      <translation>Es wurde angehalten.</translation>
    </message>
    <message>
      <location filename="../../app/jobs/program_run.py" />
      <source>It ended with exit code {code}.</source>
      <translation>Es endete mit dem Code {code}.</translation>
    </message>
    <message>
      <location filename="../../app/jobs/quantise/job.py" />
      <source>{source} could not be quantised to {type}: {reason}. Nothing of it is left on the disk.</source>
      <translation>{source} konnte nicht nach {type} quantisiert werden: {reason}. Auf dem Datenträger ist nichts davon übrig.</translation>
    </message>
    <message>
      <location filename="../../app/jobs/quantise/job.py" />
      <source>The result would be less than 5 % smaller than the {source_type} it is made from: {rows}, so they would get a larger type. Choose a smaller type, or one with short blocks such as Q4_0.</source>
      <translation>Das Ergebnis wäre um weniger als 5 % kleiner als das {source_type}, aus dem es entsteht: {rows}, sie bekämen also einen größeren Typ. Wähle einen kleineren Typ oder einen mit kurzen Blöcken wie Q4_0.</translation>
    </message>
    <message>
      <location filename="../../app/jobs/quantise/job.py" />
      <source>There is a model called {name} already: {target}.</source>
      <translation>Es gibt schon ein Modell namens {name}: {target}.</translation>
    </message>
    <message>
      <location filename="../../app/jobs/quantise/job.py" />
      <source>its process ended without a word</source>
      <translation>der Prozess endete ohne ein Wort</translation>
    </message>
    <message>
      <location filename="../../app/jobs/quantise/worker.py" />
      <source>It loads, but does not compute ({name}).</source>
      <translation>Es lädt, aber rechnet nicht ({name}).</translation>
    </message>
    <message>
      <location filename="../../app/jobs/quantise/worker.py" />
      <source>It loads, but computes what are no numbers: the source may be damaged.</source>
      <translation>Es lädt, aber rechnet etwas aus, das keine Zahlen sind: Die Quelle ist vielleicht beschädigt.</translation>
    </message>
    <message>
      <location filename="../../app/library/errors.py" />
      <source>{path} cannot be written: {reason}. Check its permissions and the disk's space.</source>
      <translation>{path} kann nicht geschrieben werden: {reason}. Prüfe die Rechte und den Platz auf der Platte.</translation>
    </message>
    <message>
      <location filename="../../app/library/find_model.py" />
      <source>{path} is no .gguf file.</source>
      <translation>{path} ist keine .gguf-Datei.</translation>
    </message>
    <message>
      <location filename="../../app/library/find_model.py" />
      <source>{shown} and {n_more:,} more{more}</source>
      <translation>{shown} und {n_more:,} weitere{more}</translation>
    </message>
    <message>
      <location filename="../../app/library/find_model.py" />
      <source>{name} cannot be used: {problem}</source>
      <translation>{name} kann nicht verwendet werden: {problem}</translation>
    </message>
    <message>
      <location filename="../../app/library/find_model.py" />
      <source>There is no model called {name}.</source>
      <translation>Es gibt kein Modell namens {name}.</translation>
    </message>
    <message>
      <location filename="../../app/library/find_model.py" />
      <source>{path} is a folder: name a .gguf file in it.</source>
      <translation>{path} ist ein Ordner: Nenne eine .gguf-Datei darin.</translation>
    </message>
    <message>
      <location filename="../../app/library/find_model.py" />
      <source>A path to a .gguf file works as well.</source>
      <translation>Auch der Pfad einer .gguf-Datei geht.</translation>
    </message>
    <message>
      <location filename="../../app/library/find_model.py" />
      <source>There is no file {path}.</source>
      <translation>Es gibt keine Datei {path}.</translation>
    </message>
    <message>
      <location filename="../../app/library/find_model.py" />
      <source>{path} cannot be read: {reason}.</source>
      <translation>{path} kann nicht gelesen werden: {reason}.</translation>
    </message>
    <message>
      <location filename="../../app/library/find_model.py" />
      <source>{name} is the title of {names}: name one of them.</source>
      <translation>{name} ist der Titel von {names}: nenne eines davon.</translation>
    </message>
    <message>
      <location filename="../../app/library/find_model.py" />
      <source>Models: {names}.</source>
      <translation>Modelle: {names}.</translation>
    </message>
    <message>
      <location filename="../../app/library/model_rows.py" />
      <source>quantised here from {name}</source>
      <translation>hier aus {name} quantisiert</translation>
    </message>
    <message>
      <location filename="../../app/library/model_rows.py" />
      <source>{sentence} It can be downloaded again.</source>
      <translation>{sentence} Es kann noch einmal heruntergeladen werden.</translation>
    </message>
    <message>
      <location filename="../../app/library/moving.py" />
      <source>The models are where they were.</source>
      <translation>Die Modelle sind, wo sie waren.</translation>
    </message>
    <message>
      <location filename="../../app/library/moving.py" />
      <source>The models are in {source} already.</source>
      <translation>Die Modelle sind schon in {source}.</translation>
    </message>
    <message>
      <location filename="../../app/library/moving.py" />
      <source>{target} is inside the present folder of models. Choose one outside.</source>
      <translation>{target} liegt im jetzigen Ordner der Modelle. Wähle einen außerhalb.</translation>
    </message>
    <message>
      <location filename="../../app/library/moving.py" />
      <source>{target} has files already. Choose an empty folder.</source>
      <translation>In {target} sind schon Dateien. Wähle einen leeren Ordner.</translation>
    </message>
    <message>
      <location filename="../../app/library/moving.py" />
      <source>The models are being moved: wait until that has ended.</source>
      <translation>Die Modelle ziehen gerade um: Warte, bis das fertig ist.</translation>
    </message>
    <message>
      <location filename="../../app/library/moving.py" />
      <source>The models have {n_bytes:size}, and {target} has room for {free:size}. Choose another folder, or make room there.</source>
      <translation>Die Modelle haben {n_bytes:size}, und in {target} ist Platz für {free:size}. Wähle einen anderen Ordner, oder schaffe dort Platz.</translation>
    </message>
    <message>
      <location filename="../../app/library/moving.py" />
      <source>The move was cancelled. {stays}</source>
      <translation>Der Umzug wurde abgebrochen. {stays}</translation>
    </message>
    <message>
      <location filename="../../app/library/moving.py" />
      <source>{source} has changed while its files were copied. {stays} Try again when nothing is written there.</source>
      <translation>{source} hat sich geändert, während kopiert wurde. {stays} Versuche es noch einmal, wenn dort nichts geschrieben wird.</translation>
    </message>
    <message>
      <location filename="../../app/library/moving.py" />
      <source>{chosen} is no folder. Choose a folder.</source>
      <translation>{chosen} ist kein Ordner. Wähle einen Ordner.</translation>
    </message>
    <message>
      <location filename="../../app/library/moving.py" />
      <source>{chosen} cannot be read: {reason}. Choose another.</source>
      <translation>{chosen} kann nicht gelesen werden: {reason}. Wähle einen anderen.</translation>
    </message>
    <message>
      <location filename="../../app/library/moving.py" />
      <source>{filename} cannot be written: {reason}. {stays}</source>
      <translation>{filename} kann nicht geschrieben werden: {reason}. {stays}</translation>
    </message>
    <message>
      <location filename="../../app/library/moving.py" />
      <source>Nothing can be written in {target}: {reason}. Choose another folder.</source>
      <translation>In {target} kann nichts geschrieben werden: {reason}. Wähle einen anderen Ordner.</translation>
    </message>
    <message>
      <location filename="../../app/library/moving.py" />
      <source>{file} is not the same there as here. {stays}</source>
      <translation>{file} ist dort nicht dasselbe wie hier. {stays}</translation>
    </message>
    <message>
      <location filename="../../app/library/removal.py" />
      <source>{file} could not be moved to the trash: {reason}.</source>
      <translation>{file} konnte nicht in den Papierkorb gelegt werden: {reason}.</translation>
    </message>
    <message>
      <location filename="../../app/library/removal.py" />
      <source>{name} {owner} and is only used from there: {path}. Remove it there, or take the folder off the list.</source>
      <translation>{name} {owner} und wird nur von dort verwendet: {path}. Entferne es dort, oder nimm den Ordner von der Liste.</translation>
    </message>
    <message>
      <location filename="../../app/library/removal.py" />
      <source>{name} is a link to another file: {link} leads to {target}. Nothing was removed: remove the link itself.</source>
      <translation>{name} ist eine Verknüpfung mit einer anderen Datei: {link} führt zu {target}. Nichts wurde entfernt: Entferne die Verknüpfung selbst.</translation>
    </message>
    <message>
      <location filename="../../app/library/removal.py" />
      <source>{file} could not be deleted: {reason}. Check the permissions of its folder.</source>
      <translation>{file} konnte nicht gelöscht werden: {reason}. Prüfe die Berechtigungen des Ordners.</translation>
    </message>
    <message>
      <location filename="../../app/library/removal.py" />
      <source>{path} was not downloaded here, so it stays: remove the file itself.</source>
      <translation>{path} wurde nicht hier heruntergeladen und bleibt: entferne die Datei selbst.</translation>
    </message>
    <message>
      <location filename="../../app/library/removal.py" />
      <source>belongs to {origin}</source>
      <translation>gehört zu {origin}</translation>
    </message>
    <message>
      <location filename="../../app/library/removal.py" />
      <source>is in a folder of yours</source>
      <translation>liegt in einem deiner Ordner</translation>
    </message>
    <message>
      <location filename="../../app/library/removal.py" />
      <source>{name} is in a folder that is a link: {folder} leads to {target}. Nothing was removed: remove the link, or the file where it is.</source>
      <translation>{name} ist in einem Ordner, der eine Verknüpfung ist: {folder} führt zu {target}. Nichts wurde entfernt: Entferne die Verknüpfung oder die Datei dort, wo sie ist.</translation>
    </message>
    <message>
      <location filename="../../app/library/removal.py" />
      <source>{name} is a part of Slipstream and stays.</source>
      <translation>{name} ist ein Teil von Slipstream und bleibt.</translation>
    </message>
    <message>
      <location filename="../../app/library/repair.py" />
      <source>Its files have changed since they were downloaded. If you did not change them, {remedy}</source>
      <translation>Die Dateien haben sich seit dem Download geändert. Wenn das nicht von dir ist: {remedy}</translation>
    </message>
    <message>
      <location filename="../../app/library/repair.py" />
      <source>download it again.</source>
      <translation>Lade es noch einmal herunter.</translation>
    </message>
    <message>
      <location filename="../../app/library/repair.py" />
      <source>download it again. It was moved, so a new copy comes to {parent}; then remove this one.</source>
      <translation>Lade es noch einmal herunter. Es wurde verschoben, eine neue Kopie kommt also nach {parent}; entferne dann diese.</translation>
    </message>
    <message>
      <location filename="../../app/library/repair.py" />
      <source>Its file has changed since it was made here from {made_from}.</source>
      <translation>Die Datei hat sich geändert, seit sie hier aus {made_from} gemacht wurde.</translation>
    </message>
    <message>
      <location filename="../../app/library/repair.py" />
      <source>{made} If you did not change it, remove it and make the copy again.</source>
      <translation>{made} Wenn das nicht von dir ist, entferne sie und mache die Kopie noch einmal.</translation>
    </message>
    <message>
      <location filename="../../app/library/repair.py" />
      <source>remove it and get it from where you had it: where it came from is not known here.</source>
      <translation>Entferne es und hole es von dort, wo du es herhattest: Hier ist nicht bekannt, woher es kam.</translation>
    </message>
    <message>
      <location filename="../../app/library/trouble.py" />
      <source>{filename} could not be used: {reason}.</source>
      <translation>{filename} konnte nicht verwendet werden: {reason}.</translation>
    </message>
    <message>
      <location filename="../../app/library/trouble.py" />
      <source>The library failed ({kind}: {error}). Try again, or report it.</source>
      <translation>Die Bibliothek ist gescheitert ({kind}: „{error}“). Versuche es noch einmal, oder melde es.</translation>
    </message>
    <message>
      <location filename="../../app/library/trouble.py" />
      <source>A file</source>
      <translation>Eine Datei</translation>
    </message>
    <message>
      <location filename="../../app/library_service/downloads.py" />
      <source>There is no download {number}.</source>
      <translation>Es gibt keinen Download {number}.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/hub.py" />
      <source>That is no access token. Make one in your account's settings on the Hub.</source>
      <translation>Das ist kein Zugangs-Token. Erzeuge eines in den Einstellungen deines Kontos auf dem Hub.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/machine.py" />
      <source>This machine could not be measured. {problem}</source>
      <translation>Dieser Rechner konnte nicht gemessen werden. {problem}</translation>
    </message>
    <message>
      <location filename="../../app/library_service/measuring.py" />
      <source>There is no benchmark called {name}. Benchmarks: {known}.</source>
      <translation>Es gibt keinen Benchmark namens {name}. Benchmarks: {known}.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/measuring.py" />
      <source>Something is being measured already. Wait for it, or stop it.</source>
      <translation>Es wird schon etwas gemessen. Warte darauf, oder halte es an.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/models.py" />
      <source>{name} is a folder. Import it in the library to use the models in it where they are.</source>
      <translation>{name} ist ein Ordner. Importiere ihn in der Bibliothek, dann werden die Modelle darin dort genutzt, wo sie sind.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/models.py" />
      <source>{name} is a part of a model; open the model's first file.</source>
      <translation>{name} ist ein Teil eines Modells; öffne die erste Datei des Modells.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/models.py" />
      <source>{name} was not downloaded here, so what it was is not known.</source>
      <translation>{name} wurde nicht hier heruntergeladen, was es war, ist also nicht bekannt.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/models.py" />
      <source>There is no model called {name} any more. Its file may have been moved or deleted.</source>
      <translation>Es gibt kein Modell namens {name} mehr. Vielleicht wurde die Datei verschoben oder gelöscht.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/models.py" />
      <source>{name} cannot be linked in {place}: {reason}. Import its folder in the library.</source>
      <translation>{name} kann in {place} nicht verknüpft werden: {reason}. Importiere den Ordner in der Bibliothek.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/models.py" />
      <source>{name} cannot be opened: its name is not UTF-8. Rename the file, or import its folder in the library.</source>
      <translation>{name} lässt sich nicht öffnen: Der Name ist kein UTF-8. Benenne die Datei um, oder importiere ihren Ordner in der Bibliothek.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/models.py" />
      <source>{path} is no model file that is there.</source>
      <translation>{path} ist keine vorhandene Modelldatei.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/models.py" />
      <source>{path} was not imported.{how}</source>
      <translation>{path} wurde nicht importiert.{how}</translation>
    </message>
    <message>
      <location filename="../../app/library_service/pairs.py" />
      <source>Replies were written meanwhile, so this may be off: test again when nothing else runs.</source>
      <translation>Inzwischen wurden Antworten geschrieben, das kann also ungenau sein: Teste noch einmal, wenn sonst nichts läuft.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/pairs.py" />
      <source>{name}: {gain:.2f}×, {drafted:rate} tokens/s instead of {plain:rate}.</source>
      <translation>{name}: {gain:.2f}×, {drafted:rate} Token/s statt {plain:rate}.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/pairs.py" />
      <source>{share:.0%} of its tokens were accepted.</source>
      <translation>{share:.0%} der Token wurden angenommen.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/pairs.py" />
      <source>{name} was not measured. {problem}</source>
      <translation>{name} wurde nicht gemessen. {problem}</translation>
    </message>
    <message>
      <location filename="../../app/library_service/pairs.py" />
      <source>{name} drafted nothing: by what drafting costs here and how often it is right, plain decoding was expected to be faster at each step. A smaller draft may help. Without one nothing is lost.</source>
      <translation>{name} machte keine Entwürfe: Nach dem, was Entwürfe hier kosten und wie oft sie stimmen, war bei jedem Schritt zu erwarten, dass es ohne Entwürfe schneller geht. Ein kleineres Entwurfsmodell hilft vielleicht. Ohne eines geht nichts verloren.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/pairs.py" />
      <source>A pair is being tested already. Wait for it, or stop it.</source>
      <translation>Es wird schon ein Paar getestet. Warte darauf, oder halte es an.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/pairs.py" />
      <source>The model cannot be read.</source>
      <translation>Das Modell kann nicht gelesen werden.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/quantising.py" />
      <source>{name} is as small as it can be made here. Use it as it is.</source>
      <translation>{name} ist so klein, wie es hier gemacht werden kann. Verwende es, wie es ist.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/quantising.py" />
      <source>{name} cannot be made smaller: {problem}</source>
      <translation>{name} kann nicht kleiner gemacht werden: {problem}</translation>
    </message>
    <message>
      <location filename="../../app/library_service/quantising.py" />
      <source>{name} is being made already. Give this one another name.</source>
      <translation>{name} entsteht schon. Gib diesem einen anderen Namen.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/quantising.py" />
      <source>There is no copy {number} that is made smaller.</source>
      <translation>Es gibt keine Kopie {number}, die verkleinert wird.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/service.py" />
      <source>A model is being downloaded or made smaller: wait until that has ended, or pause it.</source>
      <translation>Ein Modell wird heruntergeladen oder kleiner gemacht: Warte, bis das fertig ist, oder halte es an.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/settings.py" />
      <source>{name} was trained for {n_ctx:,} tokens of context: choose that many or fewer.</source>
      <translation>{name} wurde für {n_ctx:,} Token Kontext trainiert: Wähle so viele oder weniger.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/settings.py" />
      <source>This machine does not hold {n_ctx:,} tokens of context for {name}: {n_fitting:,} fit into its memory.</source>
      <translation>Dieser Rechner fasst für {name} keine {n_ctx:,} Token Kontext: In seinen Speicher passen {n_fitting:,}.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/settings.py" />
      <source>This machine runs {n_threads} threads at once: choose that many or fewer.</source>
      <translation>Dieser Rechner führt {n_threads} Threads gleichzeitig aus: Wähle so viele oder weniger.</translation>
    </message>
    <message>
      <location filename="../../app/library_service/settings.py" />
      <source>{name} cannot draft for itself.</source>
      <translation>{name} kann keine Entwürfe für sich selbst machen.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>Prompt lookup drafts without a model.</source>
      <translation>Nachschlagen im Text macht Entwürfe ohne Modell.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>A test chose {name}: {gain}.</source>
      <translation>Ein Test hat {name} gewählt: {gain}.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>{name} drafts: the model's settings name it, which goes before automatic pairing.</source>
      <translation>{name} macht Entwürfe: Die Einstellungen des Modells nennen es, und das geht vor der automatischen Wahl.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>{name} may not help. {problem}</source>
      <translation>{name} hilft vielleicht nicht. {problem}</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>Without that: {why}</source>
      <translation>Sonst gälte: {why}</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>{gain:.2f}× expected</source>
      <translation>{gain:.2f}× erwartet</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>You chose that none drafts.</source>
      <translation>Du hast gewählt, dass keines Entwürfe macht.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>{name}, which was chosen to draft, is no longer at {path}, or is another file now.</source>
      <translation>{name}, das für Entwürfe gewählt war, liegt nicht mehr in {path} oder ist jetzt eine andere Datei.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>{name}, which was chosen to draft, cannot: {problem}</source>
      <translation>{name}, das für Entwürfe gewählt war, kann es nicht: {problem}</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>You chose {name}: {gain}.</source>
      <translation>Du hast {name} gewählt: {gain}.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>None drafts: the model's settings say so, which goes before automatic pairing.</source>
      <translation>Keines macht Entwürfe: Die Einstellungen des Modells sagen es so, und das geht vor der automatischen Wahl.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>The model's settings name {name}, which cannot draft for it. {problem}</source>
      <translation>Die Einstellungen des Modells nennen {name}, das dafür keine Entwürfe machen kann. {problem}</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>That would choose the same ({gain}).</source>
      <translation>Die automatische Wahl wäre dieselbe ({gain}).</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>it drafted nothing when it was tested here</source>
      <translation>es machte keine Entwürfe, als es hier getestet wurde</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>{gain:.2f}× measured here</source>
      <translation>{gain:.2f}× hier gemessen</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>None drafts: {name} is the best and drafted nothing when it was tested here.</source>
      <translation>Keines macht Entwürfe: Das beste ist {name}, und es machte keine, als es hier getestet wurde.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>None drafts, since none is worth its memory: {name} is the best with {gain}.</source>
      <translation>Keines macht Entwürfe, denn keines ist seinen Speicher wert: Das beste ist {name} mit {gain}.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>A test found none that makes it faster here.</source>
      <translation>Ein Test hat keines gefunden, das es hier schneller macht.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>{name} drafts: {gain}.</source>
      <translation>{name} macht Entwürfe: {gain}.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>The settings of {name} cannot be changed: {error}</source>
      <translation>Die Einstellungen von {name} können nicht geändert werden: {error}</translation>
    </message>
    <message>
      <location filename="../../app/pairing/decision.py" />
      <source>There is no small model here that fits.</source>
      <translation>Hier ist kein kleines Modell, das passt.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/offers.py" />
      <source>Nothing is known that would draft for it.</source>
      <translation>Es ist nichts bekannt, das dafür Entwürfe machen könnte.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/offers.py" />
      <source>The Hub answers too slowly. Try again later.</source>
      <translation>Der Hub antwortet zu langsam. Versuche es später noch einmal.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/service.py" />
      <source>{name} cannot draft for {entry_name}. {problem}</source>
      <translation>{name} kann für {entry_name} keine Entwürfe machen. {problem}</translation>
    </message>
    <message>
      <location filename="../../app/pairing/service.py" />
      <source>Nothing can draft for {name}. {reason}</source>
      <translation>Nichts kann für {name} Entwürfe machen. {reason}</translation>
    </message>
    <message>
      <location filename="../../app/pairing/service.py" />
      <source>The draft in the model's settings cannot be used: there is no model called {own}.</source>
      <translation>Der Entwurf in den Einstellungen des Modells kann nicht verwendet werden: Es gibt kein Modell namens {own}.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/service.py" />
      <source>The draft in the model's settings cannot be used: no model drafts for itself.</source>
      <translation>Der Entwurf in den Einstellungen des Modells kann nicht verwendet werden: Kein Modell macht Entwürfe für sich selbst.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/service.py" />
      <source>No draft is asked for.</source>
      <translation>Es ist kein Entwurf gewünscht.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/service.py" />
      <source>Those that can draft for {entry_name}: {names}.</source>
      <translation>Entwürfe für {entry_name} können machen: {names}.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/service.py" />
      <source>It turns texts into vectors and writes nothing.</source>
      <translation>Es macht aus Texten Vektoren und schreibt nichts.</translation>
    </message>
    <message>
      <location filename="../../app/pairing/service.py" />
      <source>No partner was looked for: {error}</source>
      <translation>Nach keinem Partner wurde gesucht: {error}</translation>
    </message>
    <message>
      <location filename="../../app/server/calls/chat_body.py" />
      <source>The parameters of the function {name} must be of type object.</source>
      <translation>Die Parameter der Funktion {name} müssen vom Typ object sein.</translation>
    </message>
    <message>
      <location filename="../../app/server/calls/chat_body.py" />
      <source>A deep reply is one answer made of several drafts: leave n out.</source>
      <translation>Eine gründliche Antwort ist eine einzige aus mehreren Entwürfen: Lass n weg.</translation>
    </message>
    <message>
      <location filename="../../app/server/calls/chat_body.py" />
      <source>Deep replies call no tools: leave tools out, or use another speed.</source>
      <translation>Gründliche Antworten rufen keine Werkzeuge auf: Lass die Werkzeuge weg, oder nimm eine andere Geschwindigkeit.</translation>
    </message>
    <message>
      <location filename="../../app/server/calls/chat_body.py" />
      <source>A deep reply answers a user's message: the last message must be one.</source>
      <translation>Eine gründliche Antwort beantwortet eine Nachricht des Nutzers: Die letzte Nachricht muss eine sein.</translation>
    </message>
    <message>
      <location filename="../../app/server/calls/chat_body.py" />
      <source>Deep replies see no images: use another speed.</source>
      <translation>Gründliche Antworten sehen keine Bilder: Nimm eine andere Geschwindigkeit.</translation>
    </message>
    <message>
      <location filename="../../app/server/calls/model_host.py" />
      <source>The server is shutting down.</source>
      <translation>Der Server wird beendet.</translation>
    </message>
    <message>
      <location filename="../../app/server/calls/model_host.py" />
      <source>The engine could not be started: {error}</source>
      <translation>Die Engine konnte nicht gestartet werden: {error}</translation>
    </message>
    <message>
      <location filename="../../app/server/calls/model_host.py" />
      <source>The load of the model was cancelled.</source>
      <translation>Das Laden des Modells wurde abgebrochen.</translation>
    </message>
    <message>
      <location filename="../../app/server/calls/model_host.py" />
      <source>A request tries it again in {seconds} s.</source>
      <translation>In {seconds} s versucht es eine Anfrage erneut.</translation>
    </message>
    <message>
      <location filename="../../app/server/calls/model_pool.py" />
      <source>The model {name} cannot be used: {problem}</source>
      <translation>Das Modell {name} kann nicht verwendet werden: {problem}</translation>
    </message>
    <message>
      <location filename="../../app/server/calls/model_pool.py" />
      <source>No model is loaded: name one in the field 'model'.</source>
      <translation>Kein Modell ist geladen: Wähle eines aus.</translation>
    </message>
    <message>
      <location filename="../../app/server/calls/speed.py" />
      <source>None is loaded, since drafting is switched off.</source>
      <translation>Keines ist geladen, denn Entwürfe sind abgeschaltet.</translation>
    </message>
    <message>
      <location filename="../../app/server/calls/speed.py" />
      <source>speed spark is answered by a small model beside the loaded one. {why} {how}</source>
      <translation>Bei Spark antwortet ein kleines Modell neben dem geladenen. {why} {how}</translation>
    </message>
    <message>
      <location filename="../../app/server/calls/speed.py" />
      <source>Pair a small model of the same vocabulary: the model's page in the library lists what fits.</source>
      <translation>Verbinde es mit einem kleinen Modell mit demselben Vokabular: Die Seite des Modells in der Bibliothek zeigt, was passt.</translation>
    </message>
    <message>
      <location filename="../../app/server/calls/speed.py" />
      <source>Until then, choose another speed.</source>
      <translation>Wähle bis dahin eine andere Geschwindigkeit.</translation>
    </message>
    <message>
      <location filename="../../app/server/calls/speed.py" />
      <source>Switch it on in the settings under Drafting, or choose another speed.</source>
      <translation>Schalte sie in den Einstellungen unter „Entwürfe“ ein, oder wähle eine andere Geschwindigkeit.</translation>
    </message>
    <message>
      <location filename="../../app/server/chat/call.py" />
      <source>{name} turns texts into vectors and cannot write: name a model that generates text.</source>
      <translation>{name} macht aus Texten Vektoren und kann nicht schreiben: Wähle ein Modell, das Text erzeugt.</translation>
    </message>
    <message>
      <location filename="../../app/server/chat/deep.py" />
      <source>the context has no room for drafts beside the question</source>
      <translation>der Kontext hat neben der Frage keinen Platz für Entwürfe</translation>
    </message>
    <message>
      <location filename="../../app/server/chat/deep.py" />
      <source>no slot is free for a second draft</source>
      <translation>für einen zweiten Entwurf ist kein Platz frei</translation>
    </message>
    <message>
      <location filename="../../app/server/chat/deep.py" />
      <source>a second draft at once would take about as long as another reply on this machine</source>
      <translation>ein zweiter Entwurf zugleich würde auf diesem Rechner etwa so lange dauern wie eine weitere Antwort</translation>
    </message>
    <message>
      <location filename="../../app/server/chat/images.py" />
      <source>An image may have {most} MB: send a smaller one.</source>
      <translation>Ein Bild darf {most} MB haben: Sende ein kleineres.</translation>
    </message>
    <message>
      <location filename="../../app/server/chat/images.py" />
      <source>This model is loaded without a projector, so it cannot see images. {how}</source>
      <translation>Dieses Modell ist ohne Projektor geladen und kann keine Bilder sehen. {how}</translation>
    </message>
    <message>
      <location filename="../../app/server/chat/images.py" />
      <source>{n_sent} images were sent, at most {most} are taken: leave out the oldest.</source>
      <translation>{n_sent} Bilder wurden gesendet, höchstens {most} gehen: Lass die ältesten weg.</translation>
    </message>
    <message>
      <location filename="../../app/server/chat/images.py" />
      <source>Images are not fetched from the web: send it as a data URL.{how}</source>
      <translation>Bilder werden nicht aus dem Web geholt: Sende es als data-URL.{how}</translation>
    </message>
    <message>
      <location filename="../../app/server/chat/images.py" />
      <source>Load one that can: its page in the library says so.</source>
      <translation>Lade eines, das es kann: Seine Seite in der Bibliothek sagt es.</translation>
    </message>
    <message>
      <location filename="../../app/server/chat/images.py" />
      <source>The chat template of this model leaves out images of these messages.</source>
      <translation>Die Chat-Vorlage dieses Modells lässt Bilder dieser Nachrichten weg.</translation>
    </message>
    <message>
      <location filename="../../app/server/http/errors.py" />
      <source>{problem} Try again in {seconds} s.</source>
      <translation>{problem} Versuche es in {seconds} s noch einmal.</translation>
    </message>
    <message>
      <location filename="../../app/server/http/errors.py" />
      <source>There is no room on the disk for this ({reason}): free some and try again.</source>
      <translation>Auf dem Datenträger ist dafür kein Platz ({reason}): Schaffe welchen und versuche es noch einmal.</translation>
    </message>
    <message>
      <location filename="../../app/server/http/errors.py" />
      <source>Something went wrong in the server; its log says what.</source>
      <translation>Im Server ist etwas schiefgegangen; sein Protokoll sagt, was.</translation>
    </message>
    <message>
      <location filename="../../app/server/http/errors.py" />
      <source>There is no model {name} here. The models there are: {known}.</source>
      <translation>Hier gibt es kein Modell {name}. Es gibt: {known}.</translation>
    </message>
    <message>
      <location filename="../../app/server/http/listening_socket.py" />
      <source>The server cannot listen on {host} port {port}: {reason}.</source>
      <translation>Der Server kann unter {host}, Port {port}, nicht erreichbar gemacht werden: {reason}.</translation>
    </message>
    <message>
      <location filename="../../app/server/http/listening_socket.py" />
      <source>{host} is no address of this machine ({reason}). 127.0.0.1 serves this machine only, 0.0.0.0 others too.</source>
      <translation>{host} ist keine Adresse dieses Rechners ({reason}). 127.0.0.1 ist nur für diesen Rechner, 0.0.0.0 auch für andere.</translation>
    </message>
    <message>
      <location filename="../../app/server/library/worker.py" />
      <source>The library cannot start: {words}</source>
      <translation>Die Bibliothek kann nicht starten: „{words}“</translation>
    </message>
    <message>
      <location filename="../../app/server/library/worker.py" />
      <source>The server is stopping.</source>
      <translation>Der Server hält gerade an.</translation>
    </message>
    <message>
      <location filename="../../app/server/openai/response_store.py" />
      <source>{file}, where responses are stored, cannot be used: {error}.</source>
      <translation>{file}, worin Antworten gespeichert werden, ist nicht benutzbar: {error}.</translation>
    </message>
    <message>
      <location filename="../../app/server/openai/response_store.py" />
      <source>A newer Slipstream has changed {file}, where responses are stored: update this one. ({error})</source>
      <translation>Ein neueres Slipstream hat {file} geändert, worin Antworten gespeichert werden: Aktualisiere dieses. ({error})</translation>
    </message>
    <message>
      <location filename="../../app/server/owner_routes.py" />
      <source>The system does not let this account use port {port}.</source>
      <translation>Das System lässt dieses Konto Port {port} nicht nutzen.</translation>
    </message>
    <message>
      <location filename="../../app/server/owner_routes.py" />
      <source>Port {port} is free.</source>
      <translation>Der Port {port} ist frei.</translation>
    </message>
    <message>
      <location filename="../../app/server/owner_routes.py" />
      <source>The log {path} cannot be read: {reason}.</source>
      <translation>Das Protokoll {path} kann nicht gelesen werden: {reason}.</translation>
    </message>
    <message>
      <location filename="../../app/server/owner_routes.py" />
      <source>Another program uses port {port}.</source>
      <translation>Ein anderes Programm verwendet den Port {port}.</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/chat.py" />
      <source>The remote {name} answers in another form than OpenAI's.</source>
      <translation>Der entfernte Server {name} antwortet in einer anderen Form als der von OpenAI.</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/chat.py" />
      <source>The remote {name} says: {words}</source>
      <translation>Der entfernte Server {name} sagt: „{words}“</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/exchange.py" />
      <source>The remote {name} sends to another address ({status}): requests are not sent there. {how}</source>
      <translation>Der entfernte Server {name} leitet an eine andere Adresse weiter ({status}): Dorthin wird nichts gesendet. {how}</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/exchange.py" />
      <source>The remote {name} answers with {kind} instead of JSON: is its address right? It usually ends with /v1.</source>
      <translation>Der entfernte Server {name} antwortet mit {kind} statt JSON: Stimmt die Adresse? Sie endet meist auf /v1.</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/exchange.py" />
      <source>The remote {name} answers with a body that is no JSON.</source>
      <translation>Der entfernte Server {name} antwortet mit etwas, das kein JSON ist.</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/exchange.py" />
      <source>The remote {name} answers {status}: {words}</source>
      <translation>Der entfernte Server {name} antwortet {status}: „{words}“</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/exchange.py" />
      <source>The remote {name} {what} ({status}: {words}). {how}</source>
      <translation>Der entfernte Server {name} {what} ({status}: „{words}“). {how}</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/exchange.py" />
      <source>refuses its key</source>
      <translation>lehnt seinen Schlüssel ab</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/exchange.py" />
      <source>wants a key</source>
      <translation>will einen Schlüssel</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/exchange.py" />
      <source>Add it under its own one on the page Server.</source>
      <translation>Füge ihn auf der Seite „Server“ unter seiner eigenen hinzu.</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/exchange.py" />
      <source>a body of no type</source>
      <translation>einem Inhalt ohne Typ</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/exchange.py" />
      <source>Add it again with the right one on the page Server.</source>
      <translation>Füge ihn auf der Seite „Server“ mit dem richtigen neu hinzu.</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/routes.py" />
      <source>This system has no keyring that could keep the worker's token, so the worker was not added. On Linux, a desktop session with GNOME Keyring or KWallet has one.</source>
      <translation>Dieses System hat keinen Schlüsselbund für das Token des Workers, er wurde also nicht hinzugefügt. Unter Linux hat eine Sitzung mit GNOME-Schlüsselbund oder KWallet einen.</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/routes.py" />
      <source>Its token is not in this system's keyring any more: add the worker again.</source>
      <translation>Das Token ist nicht mehr im Schlüsselbund dieses Systems: Füge den Worker noch einmal hinzu.</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/routes.py" />
      <source>There is no worker {address}.</source>
      <translation>Es gibt keinen Worker {address}.</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/routes.py" />
      <source>The address of a worker is as it is shown there, as rpc://192.168.1.20:8643.</source>
      <translation>Die Adresse eines Workers ist die, die dort steht, etwa rpc://192.168.1.20:8643.</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/store.py" />
      <source>{name} is no model of this machine: name one that {where} shows.</source>
      <translation>{name} ist kein Modell dieses Computers: Nenne eines, das {where} zeigt.</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/store.py" />
      <source>The remote servers</source>
      <translation>Die Liste der entfernten Server</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/store.py" />
      <source>the library</source>
      <translation>die Bibliothek</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/upstream.py" />
      <source>The remote {name} ({url}) does not answer: {why}.</source>
      <translation>Der entfernte Server {name} ({url}) antwortet nicht: {why}.</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/upstream.py" />
      <source>it took too long</source>
      <translation>es hat zu lange gedauert</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/upstream.py" />
      <source>The remote {name} is this server itself: it has no further models.</source>
      <translation>Der entfernte Server {name} ist dieser Server selbst: Er hat keine weiteren Modelle.</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/upstream.py" />
      <source>The remote {name} {what}: {words}</source>
      <translation>Der entfernte Server {name} {what}: {words}</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/upstream.py" />
      <source>The remote {name} answers {status_code} at {url}: is its address right?</source>
      <translation>Der entfernte Server {name} antwortet {status_code} unter {url}: Stimmt die Adresse?</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/upstream.py" />
      <source>The remote {name} was not asked: {variable} holds no API key, which is one word of printable ASCII.</source>
      <translation>Der entfernte Server {name} wurde nicht gefragt: {variable} enthält keinen API-Schlüssel; einer ist ein Wort aus druckbaren ASCII-Zeichen.</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/upstream.py" />
      <source>it ended the connection before the answer was complete</source>
      <translation>er hat die Verbindung getrennt, bevor die Antwort vollständig war</translation>
    </message>
    <message>
      <location filename="../../app/server/remotes/upstream.py" />
      <source>What answers at {url}/models lists no models: the address of an OpenAI-style server ends with /v1.</source>
      <translation>Was unter {url}/models antwortet, nennt keine Modelle: Die Adresse eines Servers wie OpenAI endet auf /v1.</translation>
    </message>
    <message>
      <location filename="../../app/server/replies/constraints.py" />
      <source>The pattern "{shown}" looks around, which cannot be followed: change it, or leave out "strict".</source>
      <translation>Das Muster „{shown}“ schaut sich um, was nicht befolgt werden kann: Ändere es, oder lass „strict“ weg.</translation>
    </message>
    <message>
      <location filename="../../app/server/replies/constraints.py" />
      <source>The JSON schema is nested too deeply.</source>
      <translation>Das JSON-Schema ist zu tief verschachtelt.</translation>
    </message>
    <message>
      <location filename="../../app/server/templates/chat_template.py" />
      <source>The chat template of this model cannot be used: {reason}. Send a text prompt to /v1/completions.</source>
      <translation>Die Chat-Vorlage dieses Modells ist nicht zu gebrauchen: {reason}. Wähle ein anderes Modell.</translation>
    </message>
    <message>
      <location filename="../../app/server/templates/chat_template.py" />
      <source>it took more than {seconds:g} seconds</source>
      <translation>sie brauchte mehr als {seconds:g} Sekunden</translation>
    </message>
    <message>
      <location filename="../../app/server/templates/chat_template.py" />
      <source>This model does not support tools: its template has no place for them. Choose a model that does, or send none.</source>
      <translation>Dieses Modell unterstützt keine Werkzeuge: Seine Vorlage hat keinen Platz dafür. Wähle ein Modell, das es tut, oder sende keine.</translation>
    </message>
    <message>
      <location filename="../../app/server/templates/chat_template.py" />
      <source>The chat template refuses these messages: {error}.</source>
      <translation>Die Chat-Vorlage des Modells lehnt diese Nachrichten ab: {error}.</translation>
    </message>
    <message>
      <location filename="../../app/server/templates/chat_template.py" />
      <source>The chat template of this model does not show the last message, so it cannot be continued.</source>
      <translation>Die Chat-Vorlage dieses Modells zeigt die letzte Nachricht nicht, daher kann sie nicht fortgesetzt werden.</translation>
    </message>
    <message>
      <location filename="../../app/server/templates/chat_template.py" />
      <source>it gave an empty prompt</source>
      <translation>sie ergab einen leeren Prompt</translation>
    </message>
    <message>
      <location filename="../../app/server/templates/chat_template.py" />
      <source>it ended the process that renders it</source>
      <translation>sie beendete den Prozess, der sie ausführt</translation>
    </message>
    <message>
      <location filename="../../app/settings/api_keys.py" />
      <source>There is no key called {name}. Keys: {known}.</source>
      <translation>Es gibt keinen Schlüssel namens {name}. Schlüssel: {known}.</translation>
    </message>
    <message>
      <location filename="../../app/settings/api_keys.py" />
      <source>A key cannot be called {name}: a name has up to 64 letters, digits, spaces and . @ _ -, and begins with a letter or digit.</source>
      <translation>Ein Schlüssel kann nicht {name} heißen: Ein Name hat bis zu 64 Buchstaben, Ziffern, Leerzeichen und . @ _ - und beginnt mit Buchstabe oder Ziffer.</translation>
    </message>
    <message>
      <location filename="../../app/settings/api_keys.py" />
      <source>The key cannot be kept in {path}: {error}.</source>
      <translation>Der Schlüssel kann nicht in {path} abgelegt werden: {error}.</translation>
    </message>
    <message>
      <location filename="../../app/settings/api_keys.py" />
      <source>The API keys</source>
      <translation>Die Liste der API-Schlüssel</translation>
    </message>
    <message>
      <location filename="../../app/settings/api_keys.py" />
      <source>There is a key called {name} already: revoke it first, or take another name.</source>
      <translation>Es gibt schon einen Schlüssel namens {name}: Widerrufe ihn zuerst, oder nimm einen anderen Namen.</translation>
    </message>
    <message>
      <location filename="../../app/settings/model_settings_store.py" />
      <source>The settings of models</source>
      <translation>Die Datei mit den Einstellungen der Modelle</translation>
    </message>
    <message>
      <location filename="../../app/settings/model_settings_store.py" />
      <source>When models were used last</source>
      <translation>Die Datei mit der letzten Nutzung der Modelle</translation>
    </message>
    <message>
      <location filename="../../app/settings/worker_tokens.py" />
      <source>The workers</source>
      <translation>Die Liste der Worker</translation>
    </message>
    <message>
      <location filename="../../core/engine/engines.py" />
      <source>No small model that can answer alone is paired with this model.</source>
      <translation>Mit diesem Modell ist kein kleines Modell verbunden, das allein antworten kann.</translation>
    </message>
    <message>
      <location filename="../../core/engine/image_steps.py" />
      <source>The projector made other rows of the image than it had announced.</source>
      <translation>Der Projektor hat aus dem Bild andere Zeilen gemacht als angekündigt.</translation>
    </message>
    <message>
      <location filename="../../core/engine/model_runner.py" />
      <source>The KV cache is full: {n_tokens} tokens do not fit. Load the model with more cells.</source>
      <translation>Der KV-Cache ist voll: {n_tokens} Token passen nicht hinein. Lade das Modell mit mehr Zellen.</translation>
    </message>
    <message>
      <location filename="../../core/engine/model_runner.py" />
      <source>The engine made an invalid batch. This is a bug in Slipstream.</source>
      <translation>Die Engine hat einen ungültigen Stapel gebildet. Das ist ein Fehler in Slipstream.</translation>
    </message>
    <message>
      <location filename="../../core/llama/context.py" />
      <source>llama.cpp could not make a context of {cells}.</source>
      <translation>llama.cpp konnte keinen Kontext von {cells} anlegen.</translation>
    </message>
    <message>
      <location filename="../../core/llama/context.py" />
      <source>llama.cpp could not make a context for embeddings of {n_tokens:,} tokens.</source>
      <translation>llama.cpp konnte keinen Kontext für Vektoren von {n_tokens:,} Token anlegen.</translation>
    </message>
    <message>
      <location filename="../../core/llama/context.py" />
      <source>llama.cpp could not load the LoRA adapter {path}: it must be a GGUF file made for this model.</source>
      <translation>llama.cpp konnte den LoRA-Adapter {path} nicht laden: Es muss eine GGUF-Datei für dieses Modell sein.</translation>
    </message>
    <message>
      <location filename="../../core/llama/devices.py" />
      <source>This build of llama.cpp cannot use devices of other machines. {how}</source>
      <translation>Dieser Bau von llama.cpp kann keine Geräte anderer Rechner nutzen. {how}</translation>
    </message>
    <message>
      <location filename="../../core/llama/devices.py" />
      <source>There is no device called {name}. {how}</source>
      <translation>Es gibt kein Gerät namens {name}. {how}</translation>
    </message>
    <message>
      <location filename="../../core/llama/devices.py" />
      <source>llama.cpp cannot use the devices that are to be lent.</source>
      <translation>llama.cpp kann die Geräte nicht nutzen, die verliehen werden sollen.</translation>
    </message>
    <message>
      <location filename="../../core/llama/devices.py" />
      <source>Take the worker out of the model's settings.</source>
      <translation>Nimm den Worker aus den Einstellungen des Modells.</translation>
    </message>
    <message>
      <location filename="../../core/llama/devices.py" />
      <source>Choose another one in Settings under Engine.</source>
      <translation>Wähle in den Einstellungen unter Engine ein anderes.</translation>
    </message>
    <message>
      <location filename="../../core/llama/heads.py" />
      <source>This build of llama.cpp lacks {missing}.</source>
      <translation>Diesem Bau von llama.cpp fehlt {missing}.</translation>
    </message>
    <message>
      <location filename="../../core/llama/library.py" />
      <source>llama.cpp is not installed. {how}: it builds it for this machine.</source>
      <translation>llama.cpp ist nicht installiert. {how}: Es wird dann für diesen Rechner gebaut.</translation>
    </message>
    <message>
      <location filename="../../core/llama/library.py" />
      <source>Quit and start Slipstream again</source>
      <translation>Beende Slipstream und starte es neu</translation>
    </message>
    <message>
      <location filename="../../core/llama/library.py" />
      <source>llama.cpp's libraries do not load: {error}. {how}.</source>
      <translation>Die Bibliotheken von llama.cpp laden nicht: {error}. {how}.</translation>
    </message>
    <message>
      <location filename="../../core/llama/library.py" />
      <source>Quit, delete the folder .venv and start it again</source>
      <translation>Beende Slipstream, lösche den Ordner .venv und starte es neu</translation>
    </message>
    <message>
      <location filename="../../core/llama/model.py" />
      <source>llama.cpp could not load {path}.</source>
      <translation>llama.cpp konnte {path} nicht laden.</translation>
    </message>
    <message>
      <location filename="../../core/llama/projector.py" />
      <source>{path} is not a projector for this model, so it cannot see images with it.</source>
      <translation>{path} ist kein Projektor für dieses Modell, es kann damit also keine Bilder sehen.</translation>
    </message>
    <message>
      <location filename="../../core/llama/projector.py" />
      <source>{path} is not a projector for images.</source>
      <translation>{path} ist kein Projektor für Bilder.</translation>
    </message>
    <message>
      <location filename="../../core/llama/projector.py" />
      <source>This build of llama.cpp cannot read images: {error}.</source>
      <translation>Dieser Bau von llama.cpp kann keine Bilder lesen: {error}.</translation>
    </message>
    <message>
      <location filename="../../core/llama/projector.py" />
      <source>llama.cpp has no memory for an image.</source>
      <translation>llama.cpp hat keinen Speicher für ein Bild.</translation>
    </message>
    <message>
      <location filename="../../core/llama/projector.py" />
      <source>The model's projector failed on an image.</source>
      <translation>Der Projektor des Modells ist an einem Bild gescheitert.</translation>
    </message>
    <message>
      <location filename="../../core/llama/projector.py" />
      <source>The model's projector cannot take an image of this size and shape.</source>
      <translation>Der Projektor des Modells kann kein Bild dieser Größe und Form nehmen.</translation>
    </message>
    <message>
      <location filename="../../core/llama/projector.py" />
      <source>The model has no tokens for the marks that its projector puts around images.</source>
      <translation>Dem Modell fehlen Token für die Marken, die sein Projektor um Bilder setzt.</translation>
    </message>
    <message>
      <location filename="../../core/loading/contexts.py" />
      <source>{path} cannot draft for {model_path}. {reason}</source>
      <translation>{path} kann für {model_path} keine Entwürfe machen. {reason}</translation>
    </message>
    <message>
      <location filename="../../core/loading/load_drafts.py" />
      <source>{name} could not be loaded.</source>
      <translation>{name} konnte nicht geladen werden.</translation>
    </message>
    <message>
      <location filename="../../core/loading/load_drafts.py" />
      <source>{path} cannot be used. {reason}</source>
      <translation>{path} kann nicht verwendet werden. {reason}</translation>
    </message>
    <message>
      <location filename="../../core/loading/load_drafts.py" />
      <source>{path} ({its}) is larger than {model_path} ({mine}), so drafting with it only costs time: choose a smaller draft model.</source>
      <translation>{path} ({its}) ist größer als {model_path} ({mine}), Entwürfe damit kosten also nur Zeit: Wähle ein kleineres Entwurfsmodell.</translation>
    </message>
    <message>
      <location filename="../../core/loading/load_drafts.py" />
      <source>{name} is not loaded, since drafting is switched off.</source>
      <translation>{name} ist nicht geladen, denn Entwürfe sind abgeschaltet.</translation>
    </message>
    <message>
      <location filename="../../core/loading/load_drafts.py" />
      <source>The prediction heads of {model_path} are not used. {reason}</source>
      <translation>Die Vorhersageköpfe von {model_path} werden nicht genutzt. {reason}</translation>
    </message>
    <message>
      <location filename="../../core/loading/load_drafts.py" />
      <source>{name} is a head that drafts for this model and cannot answer alone.</source>
      <translation>{name} ist ein Kopf, der für dieses Modell Entwürfe macht und nicht allein antworten kann.</translation>
    </message>
    <message>
      <location filename="../../core/loading/load_drafts.py" />
      <source>There is too little memory for {name} to answer beside the loaded model: its cache of {n_cells:,} tokens does not fit. Choose another speed, or close other programs and try again.</source>
      <translation>Für {name} ist neben dem geladenen Modell zu wenig Speicher da: Sein Cache von {n_cells:,} Token passt nicht. Wähle eine andere Geschwindigkeit, oder schließe andere Programme und versuche es noch einmal.</translation>
    </message>
    <message>
      <location filename="../../core/loading/load_drafts.py" />
      <source>{draft_path} does not draft. {reason}</source>
      <translation>{draft_path} macht keine Entwürfe. {reason}</translation>
    </message>
    <message>
      <location filename="../../core/loading/load_engine.py" />
      <source>{model_path} is not a model that continues text, so Slipstream cannot run it.</source>
      <translation>{model_path} ist kein Modell, das Text fortsetzt, Slipstream kann es also nicht ausführen.</translation>
    </message>
    <message>
      <location filename="../../core/loading/load_engine.py" />
      <source>There is no projector {mmproj}.</source>
      <translation>Es gibt keinen Projektor {mmproj}.</translation>
    </message>
    <message>
      <location filename="../../core/loading/load_engine.py" />
      <source>{mmproj} cannot be read again: {error}.</source>
      <translation>{mmproj} kann nicht noch einmal gelesen werden: {error}.</translation>
    </message>
    <message>
      <location filename="../../core/loading/load_engine.py" />
      <source>Vectors of texts with {n_tokens:,} tokens take it. Send shorter ones.</source>
      <translation>Vektoren von Texten mit {n_tokens:,} Token brauchen so viel. Sende kürzere.</translation>
    </message>
    <message>
      <location filename="../../core/loading/load_engine.py" />
      <source>{message} Send shorter texts, or close other programs and try again.</source>
      <translation>{message} Sende kürzere Texte, oder schließe andere Programme und versuche es noch einmal.</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>Weights take {weights:size}, the KV cache of {n_ctx:,} tokens in {kv_type} {kv_cache:size}{drafts}. {advice}</source>
      <translation>Die Gewichte brauchen {weights:size}, der KV-Cache von {n_ctx:,} Token in {kv_type} {kv_cache:size}{drafts}. {advice}</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>Choose a smaller quantisation or a smaller context, or close other programs.</source>
      <translation>Wähle eine kleinere Quantisierung oder einen kleineren Kontext, oder schließe andere Programme.</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>{n_layers} of {n_all} layers are on {workers}, over {pace:,.0f} MB/s with {latency:.2f} ms there and back{speed}.</source>
      <translation>{n_layers} von {n_all} Schichten sind auf {workers}, über {pace:,.0f} MB/s mit {latency:.2f} ms hin und zurück{speed}.</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>Because this fits the free memory and is fastest, it is loaded with {chosen}.</source>
      <translation>Weil das in den freien Speicher passt und am schnellsten ist, ist es mit {chosen} geladen.</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>{first} and {last}</source>
      <translation>{first} und {last}</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>Close other programs, or let it be.</source>
      <translation>Schließe andere Programme, oder lass es so.</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>{name} does not draft: with it there is too little memory. {why}</source>
      <translation>{name} macht keine Entwürfe: Damit wäre zu wenig Speicher da. {why}</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>a context in the model's settings</source>
      <translation>einem Kontext in den Einstellungen des Modells</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>The context has {n_ctx:,} tokens: in a longer one the model reads every text in another way, short ones less well. Longer texts need {how}, up to {n_ctx_train:,} tokens.</source>
      <translation>Der Kontext hat {n_ctx:,} Token: In einem längeren liest das Modell jeden Text auf andere Weise, und kurze weniger gut. Längere Texte gehen mit {how}, bis {n_ctx_train:,} Token.</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>a number of GPU layers in the model's settings</source>
      <translation>eine Zahl von GPU-Schichten in den Einstellungen des Modells</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>This machine alone is expected to be faster, so nothing is on {workers}; {how} insists.</source>
      <translation>Dieser Rechner allein ist voraussichtlich schneller, auf {workers} ist also nichts; {how} besteht darauf.</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>{n_gpu_layers} of {everything} layers on GPUs</source>
      <translation>{n_gpu_layers} von {everything} Schichten auf GPUs</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>the experts of {n_cpu_moe} layers on the processor</source>
      <translation>den Experten von {n_cpu_moe} Schichten auf dem Prozessor</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>a KV cache of type {kv_type} instead of {usual}</source>
      <translation>einem KV-Cache vom Typ {kv_type} statt {usual}</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>a context of {n_ctx:,} tokens instead of {wanted_n_ctx:,}</source>
      <translation>einem Kontext von {n_ctx:,} Token statt {wanted_n_ctx:,}</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>It fits without asking for {names}: {text}.</source>
      <translation>Es passt, wenn du nicht auf {names} bestehst: {text}.</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>, what drafts {drafts:size}</source>
      <translation>, was Entwürfe macht {drafts:size}</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>a KV cache of type {kv_type}</source>
      <translation>einem KV-Cache vom Typ {kv_type}</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>experts of {n_cpu_moe} layers on the processor</source>
      <translation>Experten von {n_cpu_moe} Schichten auf dem Prozessor</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>{n_gpu_layers} GPU layers</source>
      <translation>{n_gpu_layers} GPU-Schichten</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>{n_ctx:,} tokens of context</source>
      <translation>{n_ctx:,} Token Kontext</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>a draft</source>
      <translation>einem Entwurfsmodell</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_fit.py" />
      <source>: {rate:expected} (an estimate)</source>
      <translation>: {rate:expected} (eine Schätzung)</translation>
    </message>
    <message>
      <location filename="../../core/loading/memory_need.py" />
      <source>llama.cpp cannot say what {name} would take.</source>
      <translation>llama.cpp kann nicht sagen, was {name} brauchen würde.</translation>
    </message>
    <message>
      <location filename="../../core/loading/worker.py" />
      <source>The request could not be prepared: {error}</source>
      <translation>Die Anfrage konnte nicht vorbereitet werden: {error}</translation>
    </message>
    <message>
      <location filename="../../core/loading/worker.py" />
      <source>The request could not be started: {error}</source>
      <translation>Die Anfrage konnte nicht begonnen werden: {error}</translation>
    </message>
    <message>
      <location filename="../../core/loading/worker.py" />
      <source>The model could not be loaded: {error}</source>
      <translation>Das Modell konnte nicht geladen werden: „{error}“</translation>
    </message>
    <message>
      <location filename="../../core/machine/bandwidth.py" />
      <source>Only {free:size} of memory is free: too little to measure its bandwidth. Close other programs.</source>
      <translation>Nur {free:size} Speicher sind frei: zu wenig, um seine Geschwindigkeit zu messen. Schließe andere Programme.</translation>
    </message>
    <message>
      <location filename="../../core/machine/bandwidth.py" />
      <source>The measurement was stopped. What was measured before still counts.</source>
      <translation>Die Messung wurde angehalten. Was vorher gemessen war, gilt weiter.</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>was killed (by the system when memory ran out, or by hand)</source>
      <translation>wurde abgebrochen (vom System, als der Speicher ausging, oder von Hand)</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>{one} stopped answering, and the part of the model that it held is gone. Start it again there: the next request connects to it and loads the model.</source>
      <translation>{one} antwortet nicht mehr, und sein Teil des Modells ist weg. Starte ihn dort neu: Die nächste Anfrage verbindet sich und lädt das Modell.</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>It says: {reason}. The file may be damaged, or made for a newer llama.cpp: download it again, or update Slipstream.</source>
      <translation>Es sagt: {reason}. Die Datei ist vielleicht beschädigt oder für ein neueres llama.cpp gemacht: Lade sie erneut herunter, oder aktualisiere Slipstream.</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>The engine {cause} while it was answering. It is being restarted: please send the request again.</source>
      <translation>Die Engine {cause}, während sie antwortete. Sie startet neu: Bitte sende die Anfrage noch einmal.</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>The engine died {n_deaths} times in a row while this request ran, so it is not run again before the engine has worked for {healthy_seconds:.0f} s without it. Change the request.</source>
      <translation>Die Engine ist {n_deaths}-mal hintereinander bei dieser Anfrage gestorben. Sie läuft erst wieder, wenn die Engine {healthy_seconds:.0f} s ohne sie gearbeitet hat. Ändere die Anfrage.</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>The worker {names}</source>
      <translation>Der Worker {names}</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>One of the workers {names}</source>
      <translation>Einer der Worker {names}</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>It says: {reason}. Memory is short: close other programs, or load the model with less context or fewer layers on GPUs.</source>
      <translation>Es sagt: {reason}. Der Speicher ist knapp: Schließe andere Programme, oder lade das Modell mit weniger Kontext oder weniger Schichten auf GPUs.</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>ran out of memory ({signal})</source>
      <translation>hatte zu wenig Speicher ({signal})</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>stopped with exit code {code}</source>
      <translation>endete mit dem Code {code}</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>aborted ({signal})</source>
      <translation>hat abgebrochen ({signal})</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>met an instruction that this CPU does not have (SIGILL)</source>
      <translation>traf auf einen Befehl, den diese CPU nicht kennt (SIGILL)</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>was ended by {name}</source>
      <translation>wurde durch {name} beendet</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>The model was unloaded.</source>
      <translation>Das Modell wurde entladen.</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>Slipstream is closing.</source>
      <translation>Slipstream wird beendet.</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>The engine {cause}, {n_deaths} times in a row.</source>
      <translation>Die Engine {cause}, {n_deaths}-mal hintereinander.</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>The engine {cause} and is being restarted.</source>
      <translation>Die Engine {cause} und startet neu.</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>crashed ({signal})</source>
      <translation>ist abgestürzt ({signal})</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>The engine process could not be started: {error}</source>
      <translation>Der Prozess der Engine konnte nicht gestartet werden: {error}</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>Its last words: {words}</source>
      <translation>Ihre letzten Worte: „{words}“</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>Since the engine died twice, nothing drafts until the model is loaded again.</source>
      <translation>Weil die Engine zweimal gestorben ist, macht nichts Entwürfe, bis das Modell neu geladen wird.</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>Texts that were kept in memory or on disk are not used until then.</source>
      <translation>Texte, die im Speicher oder auf der Platte lagen, werden bis dahin nicht genutzt.</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>Requests that ran at each death are refused until the engine has worked for a minute.</source>
      <translation>Anfragen, die jedes Mal dabei liefen, werden abgelehnt, bis die Engine eine Minute gearbeitet hat.</translation>
    </message>
    <message>
      <location filename="../../core/process/supervisor.py" />
      <source>Another model was loaded.</source>
      <translation>Ein anderes Modell wurde geladen.</translation>
    </message>
    <message>
      <location filename="../../core/remote_devices/borrowing.py" />
      <source>What answers at {address} is no worker of this version of Slipstream ({error}).</source>
      <translation>Was unter {address} antwortet, ist kein Worker dieser Version von Slipstream ({error}).</translation>
    </message>
    <message>
      <location filename="../../core/remote_devices/borrowing.py" />
      <source>it speaks version {its}, and this program {own}</source>
      <translation>es spricht Version {its} und dieses Programm {own}</translation>
    </message>
    <message>
      <location filename="../../core/remote_devices/borrowing.py" />
      <source>The worker {address} does not know this token. It shows the right one on its own machine.</source>
      <translation>Der Worker {address} kennt dieses Token nicht. Das richtige zeigt er auf seinem Rechner.</translation>
    </message>
    <message>
      <location filename="../../core/remote_devices/borrowing.py" />
      <source>The worker {address} has llama-cpp-python {its}, and this machine {own}. Both must be the same: update Slipstream on the machine with the older one.</source>
      <translation>Der Worker {address} hat llama-cpp-python {its} und dieser Rechner {own}. Beide müssen gleich sein: Aktualisiere Slipstream auf dem Rechner mit dem älteren.</translation>
    </message>
    <message>
      <location filename="../../core/remote_devices/borrowing.py" />
      <source>The worker {address} lends its devices to another program. Wait until that ends, or start one more worker there at another port.</source>
      <translation>Der Worker {address} leiht seine Geräte einem anderen Programm. Warte, bis das endet, oder starte dort noch einen Worker an einem anderen Port.</translation>
    </message>
    <message>
      <location filename="../../core/remote_devices/borrowing.py" />
      <source>The worker {address} cannot be reached ({reason}). Check the address, and whether that machine lends its devices now.</source>
      <translation>Der Worker {address} ist nicht erreichbar ({reason}). Prüfe die Adresse, und ob der Rechner seine Geräte gerade verleiht.</translation>
    </message>
    <message>
      <location filename="../../core/remote_devices/borrowing.py" />
      <source>The worker {address} says nothing: it may hang. Start it again there.</source>
      <translation>Der Worker {address} sagt nichts: Vielleicht hängt er. Starte ihn dort neu.</translation>
    </message>
    <message>
      <location filename="../../core/remote_devices/borrowing.py" />
      <source>The worker {worker} wants a token, which it shows on its own machine. {how}</source>
      <translation>Der Worker {worker} verlangt ein Token, das er auf seinem Rechner zeigt. {how}</translation>
    </message>
    <message>
      <location filename="../../core/remote_devices/borrowing.py" />
      <source>the message is too long</source>
      <translation>die Nachricht ist zu lang</translation>
    </message>
    <message>
      <location filename="../../core/remote_devices/borrowing.py" />
      <source>the message is not an object</source>
      <translation>die Nachricht ist kein Objekt</translation>
    </message>
    <message>
      <location filename="../../core/remote_devices/borrowing.py" />
      <source>Add the worker with it on the page Server.</source>
      <translation>Füge den Worker damit auf der Seite Server hinzu.</translation>
    </message>
    <message>
      <location filename="../../core/remote_devices/borrowing.py" />
      <source>it closed the connection</source>
      <translation>es hat die Verbindung getrennt</translation>
    </message>
    <message>
      <location filename="../../core/sampling/grammar.py" />
      <source>The {name} cannot be followed: {reason}.</source>
      <translation>Die Vorgabe ({name}) kann nicht befolgt werden: {reason}.</translation>
    </message>
    <message>
      <location filename="../../core/scheduler/images.py" />
      <source>The image has {width} x {height} pixels; the limit is {most} million. Send a smaller one.</source>
      <translation>Das Bild hat {width} x {height} Pixel; erlaubt sind {most} Millionen. Sende ein kleineres.</translation>
    </message>
    <message>
      <location filename="../../core/scheduler/images.py" />
      <source>The image has {width} x {height} pixels: one side may be at most {max_aspect} times the other.</source>
      <translation>Das Bild hat {width} x {height} Pixel: Eine Seite darf höchstens {max_aspect}-mal so lang sein wie die andere.</translation>
    </message>
    <message>
      <location filename="../../core/scheduler/images.py" />
      <source>The image takes {n_rows} tokens that this model must read at once, and it reads at most {n_ubatch}: send a smaller image.</source>
      <translation>Das Bild braucht {n_rows} Token, die dieses Modell auf einmal lesen muss, und es liest höchstens {n_ubatch}: Sende ein kleineres Bild.</translation>
    </message>
    <message>
      <location filename="../../core/scheduler/images.py" />
      <source>The image is damaged: {error}. Send it again, or another one.</source>
      <translation>Das Bild ist beschädigt: {error}. Sende es noch einmal oder ein anderes.</translation>
    </message>
    <message>
      <location filename="../../core/scheduler/images.py" />
      <source>It is not an image in PNG, JPEG, WebP, GIF or BMP.</source>
      <translation>Es ist kein Bild in PNG, JPEG, WebP, GIF oder BMP.</translation>
    </message>
    <message>
      <location filename="../../core/scheduler/images.py" />
      <source>The prompt ends with an image: put text behind it.</source>
      <translation>Der Prompt endet mit einem Bild: Schreibe Text dahinter.</translation>
    </message>
    <message>
      <location filename="../../core/scheduler/images.py" />
      <source>The image could not be encoded: {error}</source>
      <translation>Das Bild konnte nicht codiert werden: {error}</translation>
    </message>
    <message>
      <location filename="../../core/scheduler/input_processor.py" />
      <source>The prompt is empty: send at least one token of text.</source>
      <translation>Der Prompt ist leer: Sende mindestens ein Token Text.</translation>
    </message>
    <message>
      <location filename="../../core/values/addresses.py" />
      <source>{text} is no address of web pages: write it as https://example.com or http://localhost:3000, without what follows behind the name.</source>
      <translation>{text} ist keine Adresse von Webseiten: Schreibe sie wie https://example.com oder http://localhost:3000, ohne das, was hinter dem Namen folgt.</translation>
    </message>
    <message>
      <location filename="../../core/values/addresses.py" />
      <source>A worker is named as rpc://HOST:PORT, as it says when it starts, not {device}.</source>
      <translation>Ein Worker heißt rpc://HOST:PORT, wie er es beim Start sagt, nicht {device}.</translation>
    </message>
    <message>
      <location filename="../../core/values/addresses.py" />
      <source>{text} is no name of one host: write it as my-machine.example. With an API key any name is let in.</source>
      <translation>{text} ist kein Name eines Rechners: Schreibe ihn wie my-machine.example. Mit einem API-Schlüssel ist jeder Name erlaubt.</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>The {what} must be at least {low}, not {value}.</source>
      <translation>{what}: mindestens {low}, nicht {value}.</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>The {what} must be between {low} and {high}, not {value}.</source>
      <translation>{what}: zwischen {low} und {high}, nicht {value}.</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>The {what} must be one of {choices}, not {value}.</source>
      <translation>{what}: eines von {choices}, nicht {value}.</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>context length</source>
      <translation>Kontextlänge</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>number of KV cells</source>
      <translation>Zahl der KV-Zellen</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>number of threads</source>
      <translation>Zahl der Threads</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>number of slots</source>
      <translation>Zahl der Plätze</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>number of GPU layers</source>
      <translation>Zahl der GPU-Schichten</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>number of layers whose experts stay on the processor</source>
      <translation>Zahl der Schichten, deren Experten auf dem Prozessor bleiben</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>cache in RAM in bytes</source>
      <translation>Cache im RAM in Byte</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>cache on disk in bytes</source>
      <translation>Cache auf der Platte in Byte</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>draft depth</source>
      <translation>Tiefe der Entwürfe</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>kind of speculation</source>
      <translation>Vorausraten</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>flash attention</source>
      <translation>Flash Attention</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>pooling</source>
      <translation>Pooling</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>type of the KV cache</source>
      <translation>Typ des KV-Caches</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>{n_cells} KV cells cannot hold one context of {n_ctx} tokens.</source>
      <translation>{n_cells} KV-Zellen fassen keinen Kontext von {n_ctx} Token.</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>A KV cache of type {kv_type} needs flash attention: set it to auto or on.</source>
      <translation>Ein KV-Cache vom Typ {kv_type} braucht Flash Attention: Setze es auf auto oder on.</translation>
    </message>
    <message>
      <location filename="../../core/values/engine_options.py" />
      <source>No model file was given.</source>
      <translation>Es wurde keine Modelldatei angegeben.</translation>
    </message>
    <message>
      <location filename="../../core/values/errors.py" />
      <source>Input {index} has {n_tokens:,} tokens, and this model takes {n_most:,} at most. Shorten it, or send it in parts.</source>
      <translation>Die Eingabe {index} hat {n_tokens:,} Token, und dieses Modell nimmt höchstens {n_most:,}. Kürze sie, oder sende sie in Teilen.</translation>
    </message>
    <message>
      <location filename="../../core/values/errors.py" />
      <source>This model needs {needed:size} of memory{where}, and {free:size} is free. {detail}</source>
      <translation>Dieses Modell braucht {needed:size} Speicher{where}, und {free:size} ist frei. {detail}</translation>
    </message>
    <message>
      <location filename="../../core/values/errors.py" />
      <source>The model computed values that are not numbers, so no token can be chosen. Its file may be damaged, or it needs a KV cache of type f32 or bf16.</source>
      <translation>Das Modell hat Werte errechnet, die keine Zahlen sind, es kann also kein Token gewählt werden. Die Datei ist vielleicht beschädigt, oder es braucht einen KV-Cache vom Typ f32 oder bf16.</translation>
    </message>
    <message>
      <location filename="../../core/values/errors.py" />
      <source> on {device}</source>
      <translation> auf {device}</translation>
    </message>
    <message>
      <location filename="../../core/values/errors.py" />
      <source>Choose a smaller quantisation, a smaller context, or close other programs.</source>
      <translation>Wähle eine kleinere Quantisierung oder einen kleineren Kontext, oder schließe andere Programme.</translation>
    </message>
    <message>
      <location filename="../../core/values/model_settings.py" />
      <source>chosen for this machine</source>
      <translation>für diesen Rechner gewählt</translation>
    </message>
    <message>
      <location filename="../../core/values/model_settings.py" />
      <source>There is no setting {typed}. Settings: {names}.</source>
      <translation>Es gibt keine Einstellung {typed}. Einstellungen: {names}.</translation>
    </message>
    <message>
      <location filename="../../core/values/model_settings.py" />
      <source>The system prompt has {n_system:,} characters, more than {max_system_characters:,}.</source>
      <translation>Der System-Prompt hat {n_system:,} Zeichen, mehr als {max_system_characters:,}.</translation>
    </message>
    <message>
      <location filename="../../core/values/model_settings.py" />
      <source>text</source>
      <translation>Text</translation>
    </message>
    <message>
      <location filename="../../core/values/model_settings.py" />
      <source>a whole number</source>
      <translation>eine ganze Zahl</translation>
    </message>
    <message>
      <location filename="../../core/values/model_settings.py" />
      <source>a number</source>
      <translation>eine Zahl</translation>
    </message>
    <message>
      <location filename="../../core/values/model_settings.py" />
      <source>one of {names}</source>
      <translation>eines von {names}</translation>
    </message>
    <message>
      <location filename="../../core/values/model_settings.py" />
      <source>The speed must be one of {speeds}, not {speed}.</source>
      <translation>Die Geschwindigkeit muss eine von {speeds} sein, nicht {speed}.</translation>
    </message>
    <message>
      <location filename="../../core/values/model_settings.py" />
      <source>{name} must be {what}, not {text}.</source>
      <translation>{name} muss {what} sein, nicht {text}.</translation>
    </message>
    <message>
      <location filename="../../core/values/model_settings.py" />
      <source>The system prompt is empty. To have none, reset it.</source>
      <translation>Der System-Prompt ist leer. Um keinen zu haben, setze ihn zurück.</translation>
    </message>
    <message>
      <location filename="../../core/values/model_settings.py" />
      <source>The system prompt has halves of surrogate pairs, which are not text.</source>
      <translation>Der System-Prompt enthält halbe Zeichen, die kein Text sind.</translation>
    </message>
    <message>
      <location filename="../../core/values/model_settings.py" />
      <source>The draft is the name of a model. To draft with the recommended one, reset it.</source>
      <translation>Der Entwurf ist der Name eines Modells. Um den empfohlenen zu nehmen, setze ihn zurück.</translation>
    </message>
    <message>
      <location filename="../../core/values/model_settings.py" />
      <source>The saved settings of this model are not readable: the recommended ones are used.</source>
      <translation>Die gespeicherten Einstellungen dieses Modells sind nicht lesbar: Die empfohlenen gelten.</translation>
    </message>
    <message>
      <location filename="../../core/values/model_settings.py" />
      <source>{name} cannot be {value}.</source>
      <translation>{name} kann nicht {value} sein.</translation>
    </message>
    <message>
      <location filename="../../core/values/model_settings.py" />
      <source>A saved setting is not used: {message}</source>
      <translation>Eine gespeicherte Einstellung gilt nicht: {message}</translation>
    </message>
    <message>
      <location filename="../../core/values/request.py" />
      <source>The {name} has {n:,} characters, at most {most:,} are allowed.</source>
      <translation>Die Vorgabe ({name}) hat {n:,} Zeichen, höchstens {most:,} sind erlaubt.</translation>
    </message>
    <message>
      <location filename="../../core/values/request.py" />
      <source>A prompt takes at most {most} images, not {n}.</source>
      <translation>In einen Prompt passen höchstens {most} Bilder, nicht {n}.</translation>
    </message>
    <message>
      <location filename="../../models/catalog/catalog.py" />
      <source>A link leads out of this folder and is not followed. Import the folder it leads to.</source>
      <translation>Eine Verknüpfung führt aus diesem Ordner hinaus, und ihr wird nicht gefolgt. Importiere den Ordner, zu dem sie führt.</translation>
    </message>
    <message>
      <location filename="../../models/catalog/catalog.py" />
      <source>{n_outside} links lead out of this folder and are not followed. Import the folder they lead to.</source>
      <translation>{n_outside} Verknüpfungen führen aus diesem Ordner hinaus und werden nicht verfolgt. Importiere den Ordner, in den sie führen.</translation>
    </message>
    <message>
      <location filename="../../models/catalog/catalog.py" />
      <source>There are more than {max_folders:,} folders to look through. Choose a folder with only models.</source>
      <translation>Es wären mehr als {max_folders:,} Ordner zu durchsuchen. Wähle einen Ordner nur mit Modellen.</translation>
    </message>
    <message>
      <location filename="../../models/catalog/catalog.py" />
      <source>The folder {folder} cannot be read: {reason}. Check its permissions.</source>
      <translation>Der Ordner {folder} kann nicht gelesen werden: {reason}. Prüfe seine Rechte.</translation>
    </message>
    <message>
      <location filename="../../models/catalog/curated.py" />
      <source>{assistant}, made to draft for it, does not run here</source>
      <translation>{assistant}, eigens als Entwurfsmodell dafür gemacht, läuft hier nicht</translation>
    </message>
    <message>
      <location filename="../../models/catalog/curated.py" />
      <source>drafts with heads in its own file</source>
      <translation>entwirft mit Köpfen in der eigenen Datei</translation>
    </message>
    <message>
      <location filename="../../models/catalog/curated.py" />
      <source>{draft} may draft</source>
      <translation>{draft} kann entwerfen</translation>
    </message>
    <message>
      <location filename="../../models/catalog/curated.py" />
      <source>{what}, untested</source>
      <translation>{what}, nicht erprobt</translation>
    </message>
    <message>
      <location filename="../../models/catalog/imported_folders.py" />
      <source>{folder} {what}. Give a folder that has GGUF files somewhere in it.</source>
      <translation>{folder} {what}. Nenne einen Ordner, in dem irgendwo GGUF-Dateien liegen.</translation>
    </message>
    <message>
      <location filename="../../models/catalog/imported_folders.py" />
      <source>{folder} cannot be read: {reason}. Check its permissions.</source>
      <translation>{folder} kann nicht gelesen werden: {reason}. Prüfe die Rechte.</translation>
    </message>
    <message>
      <location filename="../../models/catalog/imported_folders.py" />
      <source>is no folder</source>
      <translation>ist kein Ordner</translation>
    </message>
    <message>
      <location filename="../../models/catalog/imported_folders.py" />
      <source>does not exist</source>
      <translation>gibt es nicht</translation>
    </message>
    <message>
      <location filename="../../models/download/model_download.py" />
      <source>{repo_id} has {names}. {problem}.</source>
      <translation>{repo_id} hat {names}. {problem}.</translation>
    </message>
    <message>
      <location filename="../../models/download/model_download.py" />
      <source>{repo_id} has no GGUF files. Search for a repository that has.</source>
      <translation>{repo_id} hat keine GGUF-Dateien. Suche ein Repository, das welche hat.</translation>
    </message>
    <message>
      <location filename="../../models/download/model_download.py" />
      <source>Say which one</source>
      <translation>Sage, welches</translation>
    </message>
    <message>
      <location filename="../../models/download/model_download.py" />
      <source>{wanted} is not one of them</source>
      <translation>{wanted} ist keines davon</translation>
    </message>
    <message>
      <location filename="../../models/download/model_download.py" />
      <source>{repo_id} lacks {missing} of the parts of {name}. Choose another one.</source>
      <translation>{repo_id} fehlen {missing} Teile von {name}. Wähle ein anderes.</translation>
    </message>
    <message>
      <location filename="../../models/download/ranges.py" />
      <source>too many requests</source>
      <translation>zu viele Anfragen</translation>
    </message>
    <message>
      <location filename="../../models/download/ranges.py" />
      <source>it sent a different range than requested</source>
      <translation>er hat einen anderen Bereich gesendet als verlangt</translation>
    </message>
    <message>
      <location filename="../../models/download/ranges.py" />
      <source>the server stopped sending</source>
      <translation>der Server sendet nichts mehr</translation>
    </message>
    <message>
      <location filename="../../models/download/ranges.py" />
      <source>it sent something else than the file</source>
      <translation>er hat etwas anderes als die Datei gesendet</translation>
    </message>
    <message>
      <location filename="../../models/download/transfer.py" />
      <source>the connection was closed early</source>
      <translation>die Verbindung wurde zu früh getrennt</translation>
    </message>
    <message>
      <location filename="../../models/estimate/fit/plan.py" />
      <source>experts of {n_layers} layers on the processor</source>
      <translation>Experten von {n_layers} Schichten auf dem Prozessor</translation>
    </message>
    <message>
      <location filename="../../models/estimate/fit/plan.py" />
      <source>{kv_type} cache for {n_ctx:,} tokens</source>
      <translation>{kv_type}-Cache für {n_ctx:,} Token</translation>
    </message>
    <message>
      <location filename="../../models/estimate/fit/plan.py" />
      <source>{n_layers} layers on GPUs</source>
      <translation>{n_layers} Schichten auf GPUs</translation>
    </message>
    <message>
      <location filename="../../models/facts/architectures.py" />
      <source>The architecture {shown} is unknown to this llama.cpp. Update Slipstream, or choose another model.</source>
      <translation>Die Architektur {shown} ist diesem llama.cpp unbekannt. Aktualisiere Slipstream, oder wähle ein anderes Modell.</translation>
    </message>
    <message>
      <location filename="../../models/facts/architectures.py" />
      <source>This file is a projector, which lets a model see or hear. Choose the model that it belongs to.</source>
      <translation>Diese Datei ist ein Projektor, mit dem ein Modell sieht oder hört. Wähle das Modell, zu dem sie gehört.</translation>
    </message>
    <message>
      <location filename="../../models/facts/architectures.py" />
      <source>This file only drafts tokens for a larger model. Choose the model that it belongs to.</source>
      <translation>Diese Datei macht nur Entwürfe für ein größeres Modell. Wähle das Modell, zu dem sie gehört.</translation>
    </message>
    <message>
      <location filename="../../models/facts/architectures.py" />
      <source>This model writes by diffusion, which Slipstream does not run. Choose another model.</source>
      <translation>Dieses Modell schreibt durch Diffusion, was Slipstream nicht ausführt. Wähle ein anderes Modell.</translation>
    </message>
    <message>
      <location filename="../../models/facts/architectures.py" />
      <source>This model needs an encoder, which Slipstream does not run. Choose another model.</source>
      <translation>Dieses Modell braucht einen Encoder, was Slipstream nicht ausführt. Wähle ein anderes Modell.</translation>
    </message>
    <message>
      <location filename="../../models/facts/architectures.py" />
      <source>This model makes sound and cannot write. Choose a model that generates text.</source>
      <translation>Dieses Modell macht Töne und kann nicht schreiben. Wähle ein Modell, das Text erzeugt.</translation>
    </message>
    <message>
      <location filename="../../models/facts/model_facts.py" />
      <source>This is a LoRA adapter: it changes a model and is loaded beside one.</source>
      <translation>Das ist ein LoRA-Adapter: Er verändert ein Modell und wird neben einem geladen.</translation>
    </message>
    <message>
      <location filename="../../models/facts/model_facts.py" />
      <source>This is an importance matrix, made to quantise a model, and not a model.</source>
      <translation>Das ist eine Wichtigkeits-Matrix zum Quantisieren eines Modells, und kein Modell.</translation>
    </message>
    <message>
      <location filename="../../models/facts/model_facts.py" />
      <source>Keep the file names it was published with, and all parts in one folder.</source>
      <translation>Behalte die Dateinamen, mit denen es veröffentlicht wurde, und alle Teile in einem Ordner.</translation>
    </message>
    <message>
      <location filename="../../models/facts/model_facts.py" />
      <source>it is one of {n_parts} parts, and {n_headers} were found</source>
      <translation>es ist eines von {n_parts} Teilen, und {n_headers} wurden gefunden</translation>
    </message>
    <message>
      <location filename="../../models/facts/model_facts.py" />
      <source>The file does not say which architecture its model has. Get the model from another source.</source>
      <translation>Die Datei sagt nicht, welche Architektur ihr Modell hat. Hole das Modell aus einer anderen Quelle.</translation>
    </message>
    <message>
      <location filename="../../models/facts/model_facts.py" />
      <source>The file has no tokenizer, so it cannot read text. Get a complete file of this model.</source>
      <translation>Die Datei hat keinen Tokenizer und kann keinen Text lesen. Hole eine vollständige Datei dieses Modells.</translation>
    </message>
    <message>
      <location filename="../../models/facts/model_facts.py" />
      <source>The file holds only the prediction heads of a model, which Slipstream uses from the model's own file. Get the model in a file that carries them.</source>
      <translation>Die Datei enthält nur die Vorhersageköpfe eines Modells, die Slipstream aus der Datei des Modells selbst nimmt. Hole das Modell in einer Datei, die sie enthält.</translation>
    </message>
    <message>
      <location filename="../../models/facts/model_facts.py" />
      <source>The file has no weights. Get a complete file of this model.</source>
      <translation>Die Datei hat keine Gewichte. Hole eine vollständige Datei dieses Modells.</translation>
    </message>
    <message>
      <location filename="../../models/facts/model_facts.py" />
      <source>Part {number} of {n_files} is missing: {name}. Download it to the same folder.</source>
      <translation>Teil {number} von {n_files} fehlt: {name}. Lade ihn in denselben Ordner herunter.</translation>
    </message>
    <message>
      <location filename="../../models/facts/model_facts.py" />
      <source>{key} has {count:,} values, and no model has so many layers</source>
      <translation>{key} hat {count:,} Werte, und kein Modell hat so viele Schichten</translation>
    </message>
    <message>
      <location filename="../../models/facts/model_facts.py" />
      <source>{key} is {value:,}, and must be between 0 and {limit:,}</source>
      <translation>{key} ist {value:,} und muss zwischen 0 und {limit:,} liegen</translation>
    </message>
    <message>
      <location filename="../../models/facts/model_facts.py" />
      <source>The file lacks {architecture}.{key}. Get a complete file of this model.</source>
      <translation>Der Datei fehlt {architecture}.{key}. Hole eine vollständige Datei dieses Modells.</translation>
    </message>
    <message>
      <location filename="../../models/facts/projector.py" />
      <source>it is not a projector for images</source>
      <translation>es ist kein Projektor für Bilder</translation>
    </message>
    <message>
      <location filename="../../models/files/errors.py" />
      <source>What has arrived is kept: start the download again, and it goes on from there.</source>
      <translation>Was angekommen ist, bleibt: Starte den Download noch einmal, und er geht dort weiter.</translation>
    </message>
    <message>
      <location filename="../../models/files/errors.py" />
      <source>The repository has a file called {shown}, which {why}. It is not downloaded: choose another repository.</source>
      <translation>Das Repository hat eine Datei namens {shown}, die {why}. Sie wird nicht heruntergeladen: Wähle ein anderes Repository.</translation>
    </message>
    <message>
      <location filename="../../models/files/errors.py" />
      <source>{needed:size} are needed in {folder}, {reserve:size} beside them stay free for other programs, and {free:size} are free: {missing:size} are missing. Free some space, or choose a smaller quantisation.</source>
      <translation>In {folder} werden {needed:size} gebraucht, daneben bleiben {reserve:size} für andere Programme frei, und {free:size} sind frei: Es fehlen {missing:size}. Schaffe Platz, oder wähle eine kleinere Quantisierung.</translation>
    </message>
    <message>
      <location filename="../../models/files/errors.py" />
      <source>The disk of {folder} is full, and {missing:size} are still to come. Free more than that: some of it stays free for other programs. {kept}</source>
      <translation>Die Platte von {folder} ist voll, und {missing:size} kommen noch. Schaffe mehr Platz als das: Etwas davon bleibt für andere Programme frei. {kept}</translation>
    </message>
    <message>
      <location filename="../../models/files/errors.py" />
      <source>{folder} cannot be written: {reason}. Change its permissions, or choose another folder for models.</source>
      <translation>In {folder} kann nicht geschrieben werden: {reason}. Ändere die Rechte, oder wähle einen anderen Ordner für Modelle.</translation>
    </message>
    <message>
      <location filename="../../models/files/errors.py" />
      <source>The file that was being written in {folder} is gone: another program has removed it, or the disk was taken away. Start again.</source>
      <translation>Die Datei, die in {folder} geschrieben wurde, ist weg: Ein anderes Programm hat sie entfernt, oder der Datenträger wurde getrennt. Fang noch einmal an.</translation>
    </message>
    <message>
      <location filename="../../models/files/errors.py" />
      <source>Nothing has arrived for {seconds:.0f} seconds{why}. Check the network. {kept}</source>
      <translation>Seit {seconds:.0f} Sekunden ist nichts angekommen{why}. Prüfe das Netz. {kept}</translation>
    </message>
    <message>
      <location filename="../../models/files/errors.py" />
      <source>{name} was downloaded twice and is not what the Hub announces: its checksum differs. It was deleted. A proxy may change downloads, or the Hub's copy is damaged: try again later.</source>
      <translation>{name} wurde zweimal heruntergeladen und ist nicht, was der Hub ankündigt: Die Prüfsumme ist anders. Es wurde gelöscht. Vielleicht verändert ein Proxy Downloads, oder die Kopie des Hubs ist beschädigt: Versuche es später noch einmal.</translation>
    </message>
    <message>
      <location filename="../../models/files/errors.py" />
      <source>The download was stopped. {kept}</source>
      <translation>Der Download wurde angehalten. {kept}</translation>
    </message>
    <message>
      <location filename="../../models/files/errors.py" />
      <source> ({reason})</source>
      <translation> ({reason})</translation>
    </message>
    <message>
      <location filename="../../models/files/errors.py" />
      <source>{name} is shorter on the Hub than its list of files says. Try again later, or choose another file: this one may be damaged there.</source>
      <translation>{name} ist auf dem Hub kürzer, als dessen Dateiliste angibt. Versuche es später noch einmal, oder wähle eine andere Datei: Diese kann dort beschädigt sein.</translation>
    </message>
    <message>
      <location filename="../../models/files/errors.py" />
      <source>{name} keeps changing on the Hub while it is downloaded. Try again in a while.</source>
      <translation>{name} ändert sich auf dem Hub während des Downloads immer wieder. Versuche es in einer Weile noch einmal.</translation>
    </message>
    <message>
      <location filename="../../models/files/integrity.py" />
      <source>{name} was moved: it is {now} now.</source>
      <translation>{name} wurde verschoben: Es ist jetzt {now}.</translation>
    </message>
    <message>
      <location filename="../../models/files/integrity.py" />
      <source>{path} was deleted or moved away by another program.</source>
      <translation>{path} wurde von einem anderen Programm gelöscht oder verschoben.</translation>
    </message>
    <message>
      <location filename="../../models/files/integrity.py" />
      <source>{what} It was made from {made_from}: quantise that again.</source>
      <translation>{what} Es wurde aus {made_from} gemacht: Quantisiere das noch einmal.</translation>
    </message>
    <message>
      <location filename="../../models/files/integrity.py" />
      <source>another model</source>
      <translation>einem anderen Modell</translation>
    </message>
    <message>
      <location filename="../../models/files/json_store.py" />
      <source>{what} could not be read: the file is damaged. It was kept as {aside}, and a new one begins.</source>
      <translation>{what} konnte nicht gelesen werden: Die Datei ist beschädigt. Sie liegt jetzt in {aside}, und eine neue beginnt.</translation>
    </message>
    <message>
      <location filename="../../models/files/json_store.py" />
      <source>{path} was written by a newer Slipstream and is left as it is. Update Slipstream, or move the file away.</source>
      <translation>{path} stammt von einem neueren Slipstream und bleibt, wie es ist. Aktualisiere Slipstream, oder verschiebe die Datei.</translation>
    </message>
    <message>
      <location filename="../../models/files/json_store.py" />
      <source>Another program has been writing {path} for some time. Try again in a moment.</source>
      <translation>Ein anderes Programm schreibt schon länger {path}. Versuche es gleich noch einmal.</translation>
    </message>
    <message>
      <location filename="../../models/files/json_store.py" />
      <source>{path} cannot be read: {reason}. Check its permissions.</source>
      <translation>{path} kann nicht gelesen werden: {reason}. Prüfe die Rechte.</translation>
    </message>
    <message>
      <location filename="../../models/files/json_store.py" />
      <source>{path} is damaged and cannot be moved away: {reason}. Delete it.</source>
      <translation>{path} ist beschädigt und kann nicht weggelegt werden: {reason}. Lösche die Datei.</translation>
    </message>
    <message>
      <location filename="../../models/files/safe_path.py" />
      <source>leads out of its folder</source>
      <translation>aus ihrem Ordner hinausführt</translation>
    </message>
    <message>
      <location filename="../../models/files/safe_path.py" />
      <source>has a hidden or special part</source>
      <translation>einen versteckten oder besonderen Teil hat</translation>
    </message>
    <message>
      <location filename="../../models/files/safe_path.py" />
      <source>has characters that are not allowed</source>
      <translation>unerlaubte Zeichen hat</translation>
    </message>
    <message>
      <location filename="../../models/files/safe_path.py" />
      <source>has a part that some systems cannot store</source>
      <translation>einen Teil hat, den manche Systeme nicht speichern können</translation>
    </message>
    <message>
      <location filename="../../models/files/safe_path.py" />
      <source>is too long</source>
      <translation>zu lang ist</translation>
    </message>
    <message>
      <location filename="../../models/files/safe_path.py" />
      <source>leads out of {folder} through a link</source>
      <translation>durch eine Verknüpfung aus {folder} hinausführt</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Name or service not known</source>
      <translation>Name oder Dienst nicht bekannt</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Connection timed out</source>
      <translation>Zeitüberschreitung der Verbindung</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Temporary failure in name resolution</source>
      <translation>Der Name lässt sich vorübergehend nicht auflösen</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Permission denied</source>
      <translation>Keine Berechtigung</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Address already in use</source>
      <translation>Die Adresse wird bereits verwendet</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Device or resource busy</source>
      <translation>Das Gerät oder die Datei ist in Benutzung</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Connection refused</source>
      <translation>Verbindung abgelehnt</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Connection reset by peer</source>
      <translation>Die Verbindung wurde von der Gegenseite beendet</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Disk quota exceeded</source>
      <translation>Das Speicherkontingent ist erschöpft</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>File exists</source>
      <translation>Die Datei gibt es schon</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>File too large</source>
      <translation>Die Datei ist zu groß</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>No route to host</source>
      <translation>Kein Weg zu diesem Rechner</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Input/output error</source>
      <translation>Ein-/Ausgabefehler</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Is a directory</source>
      <translation>Das ist ein Ordner</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Too many open files</source>
      <translation>Zu viele offene Dateien</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>File name too long</source>
      <translation>Der Dateiname ist zu lang</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Network is unreachable</source>
      <translation>Das Netzwerk ist nicht erreichbar</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Too many open files in system</source>
      <translation>Zu viele offene Dateien im System</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>No such file or directory</source>
      <translation>Datei oder Ordner nicht gefunden</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Cannot allocate memory</source>
      <translation>Nicht genug Arbeitsspeicher</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>No space left on device</source>
      <translation>Kein Platz mehr auf dem Datenträger</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Not a directory</source>
      <translation>Das ist kein Ordner</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Directory not empty</source>
      <translation>Der Ordner ist nicht leer</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Operation not permitted</source>
      <translation>Das ist nicht erlaubt</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Broken pipe</source>
      <translation>Die Gegenseite nimmt nichts mehr an</translation>
    </message>
    <message>
      <location filename="../../models/formatting/system_error.py" />
      <source>Read-only file system</source>
      <translation>Das Dateisystem kann nur gelesen werden</translation>
    </message>
    <message>
      <location filename="../../models/gguf/byte_source.py" />
      <source>There is no file {path}. Put it back, or choose another model.</source>
      <translation>Die Datei {path} gibt es nicht. Lege sie zurück, oder wähle ein anderes Modell.</translation>
    </message>
    <message>
      <location filename="../../models/gguf/byte_source.py" />
      <source>You are not allowed to read {path}. Change its permissions, or copy it to a folder of your own.</source>
      <translation>{path} darfst du nicht lesen. Ändere die Rechte, oder kopiere die Datei in einen deiner Ordner.</translation>
    </message>
    <message>
      <location filename="../../models/gguf/byte_source.py" />
      <source>{name} is {kind}. Choose a model file that ends in .gguf.</source>
      <translation>{name} ist {kind}. Wähle eine Modelldatei, die auf .gguf endet.</translation>
    </message>
    <message>
      <location filename="../../models/gguf/byte_source.py" />
      <source>a folder</source>
      <translation>ein Ordner</translation>
    </message>
    <message>
      <location filename="../../models/gguf/byte_source.py" />
      <source>not a plain file</source>
      <translation>keine einfache Datei</translation>
    </message>
    <message>
      <location filename="../../models/gguf/errors.py" />
      <source>{name} is incomplete: it has {actual:,} bytes, and at least {needed:,} belong to it. The download or the copy was probably cut short: download the file again.</source>
      <translation>{name} ist unvollständig: Es hat {actual:,} Byte, und mindestens {needed:,} gehören dazu. Wahrscheinlich brach der Download oder die Kopie ab: Lade die Datei noch einmal herunter.</translation>
    </message>
    <message>
      <location filename="../../models/gguf/errors.py" />
      <source>The file is damaged: download it again.</source>
      <translation>Die Datei ist beschädigt: Lade sie noch einmal herunter.</translation>
    </message>
    <message>
      <location filename="../../models/gguf/errors.py" />
      <source>{name} cannot be read: {what}. {advice}</source>
      <translation>{name} kann nicht gelesen werden: {what}. {advice}</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>{name} is not a GGUF model. Choose a file that begins with the letters GGUF.</source>
      <translation>{name} ist kein GGUF-Modell. Wähle eine Datei, die mit den Buchstaben GGUF beginnt.</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>it is a Git LFS pointer to one. Fetch the file itself with `git lfs pull`.</source>
      <translation>Es ist ein Git-LFS-Verweis auf eines. Hole die Datei selbst mit `git lfs pull`.</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>it is a web page, so the download went wrong. Download the file again.</source>
      <translation>Es ist eine Webseite, der Download ging also schief. Lade die Datei noch einmal herunter.</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>it has the older GGML format. Get the model as GGUF.</source>
      <translation>Es hat das ältere GGML-Format. Hole das Modell als GGUF.</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>it has the older GGJT format. Get the model as GGUF.</source>
      <translation>Es hat das ältere GGJT-Format. Hole das Modell als GGUF.</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>it is an archive or a PyTorch checkpoint. Get the model as GGUF.</source>
      <translation>Es ist ein Archiv oder ein Checkpoint von PyTorch. Hole das Modell als GGUF.</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>its tensor {name} has the unknown type {id_}</source>
      <translation>sein Tensor {name} hat den unbekannten Typ {id_}</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>{name} is empty. The download probably never began: download the file again.</source>
      <translation>{name} ist leer. Wahrscheinlich hat der Download nie begonnen: Lade die Datei noch einmal herunter.</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>its header is longer than {most} MiB, more than any real model has</source>
      <translation>sein Kopf ist länger als {most} MiB, mehr als irgendein echtes Modell hat</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>Get the file for little-endian machines, or convert it with gguf_convert_endian.py.</source>
      <translation>Hole die Datei für Little-Endian-Rechner, oder wandle sie mit gguf_convert_endian.py um.</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>Get a newer file of this model, or convert it again with a current llama.cpp.</source>
      <translation>Hole eine neuere Datei dieses Modells, oder wandle es mit einem aktuellen llama.cpp noch einmal um.</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>Update Slipstream, or get the file in version 3.</source>
      <translation>Aktualisiere Slipstream, oder hole die Datei in Version 3.</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>it announces {count:,} {what}, and no model has more than {limit:,}</source>
      <translation>es kündigt {count:,} {what} an, und kein Modell hat mehr als {limit:,}</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>a {what} has {n_bytes:,} bytes, more than the {limit:,} allowed</source>
      <translation>{what}: {n_bytes:,} Byte, mehr als die erlaubten {limit:,}</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>the metadata entry {key} has the unknown type {kind}</source>
      <translation>der Eintrag {key} der Metadaten hat den unbekannten Typ {kind}</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>the text {key} in its metadata has {n_bytes:,} bytes</source>
      <translation>der Text {key} seiner Metadaten hat {n_bytes:,} Byte</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>the metadata entry {key} is an array of arrays, which llama.cpp does not read</source>
      <translation>der Eintrag {key} der Metadaten ist eine Liste von Listen, was llama.cpp nicht liest</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>the array {key} in its metadata has the unknown type {kind}</source>
      <translation>die Liste {key} seiner Metadaten hat den unbekannten Typ {kind}</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>the array {key} in its metadata announces {count:,} items</source>
      <translation>die Liste {key} seiner Metadaten kündigt {count:,} Einträge an</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>the array {key} in its metadata announces {count:,} strings</source>
      <translation>die Liste {key} seiner Metadaten kündigt {count:,} Texte an</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>its alignment is {value} and must be a power of two</source>
      <translation>seine Ausrichtung ist {value} und muss eine Zweierpotenz sein</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>its tensor {name} has {n_dimensions:,} dimensions, more than {max_dimensions}</source>
      <translation>sein Tensor {name} hat {n_dimensions:,} Dimensionen, mehr als {max_dimensions}</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>its tensor {name} has more elements than can be counted</source>
      <translation>sein Tensor {name} hat mehr Elemente, als sich zählen lassen</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>its tensor {name} has a type ({id_}) that llama.cpp no longer reads</source>
      <translation>sein Tensor {name} hat einen Typ ({id_}), den llama.cpp nicht mehr liest</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>It is damaged, or made for a newer llama.cpp.</source>
      <translation>Es ist beschädigt oder für ein neueres llama.cpp gemacht.</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>{name} is not a GGUF model: {what}</source>
      <translation>{name} ist kein GGUF-Modell: {what}</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>a value in its metadata has {n_bytes:,} bytes</source>
      <translation>ein Wert seiner Metadaten hat {n_bytes:,} Byte</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>the array {key} in its metadata has {count:,} texts in {n_bytes:,} bytes</source>
      <translation>die Liste {key} seiner Metadaten hat {count:,} Texte in {n_bytes:,} Byte</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>a text in its metadata is longer than any file</source>
      <translation>ein Text seiner Metadaten ist länger als jede Datei</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>it was written for big-endian machines</source>
      <translation>es wurde für Big-Endian-Rechner geschrieben</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>it is GGUF version {version}, which is no longer in use</source>
      <translation>es ist GGUF Version {version}, die nicht mehr in Gebrauch ist</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>what follows the letters GGUF is no version of the format</source>
      <translation>was auf die Buchstaben GGUF folgt, ist keine Version des Formats</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>it is GGUF version {version}, and only versions 2 and 3 are known</source>
      <translation>es ist GGUF Version {version}, und nur 2 und 3 sind bekannt</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>its metadata has the key {key} twice</source>
      <translation>seine Metadaten haben den Schlüssel {key} zweimal</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>the names in its header are longer than those of any real model</source>
      <translation>die Namen in seinem Kopf sind länger als die irgendeines echten Modells</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>a {what} is not valid UTF-8</source>
      <translation>{what}: kein gültiges UTF-8</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>it has the tensor {name} twice</source>
      <translation>es hat den Tensor {name} zweimal</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>starts at {offset:,} and not at {expected:,}, where the one before it ends</source>
      <translation>beginnt bei {offset:,} und nicht bei {expected:,}, wo der vorige endet</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>its tensor {name} {where}</source>
      <translation>sein Tensor {name} {where}</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>Get a newer file of this model, for example in Q4_0.</source>
      <translation>Hole eine neuere Datei dieses Modells, zum Beispiel in Q4_0.</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>a metadata key is empty</source>
      <translation>ein Schlüssel der Metadaten ist leer</translation>
    </message>
    <message>
      <location filename="../../models/gguf/header.py" />
      <source>its tensor {name}</source>
      <translation>seinem Tensor {name}</translation>
    </message>
    <message>
      <location filename="../../models/gguf/tensor_types.py" />
      <source>the rows of {what} cannot be divided into whole blocks of {type}</source>
      <translation>die Zeilen von {what} lassen sich nicht in ganze Blöcke von {type} teilen</translation>
    </message>
    <message>
      <location filename="../../models/hub/client.py" />
      <source>{repo_id} is no name of a repository. It looks like maker/model-GGUF.</source>
      <translation>{repo_id} ist kein Name eines Repositorys. Er sieht aus wie maker/model-GGUF.</translation>
    </message>
    <message>
      <location filename="../../models/hub/client.py" />
      <source>{repo_id} has no commit</source>
      <translation>{repo_id} hat keinen Commit</translation>
    </message>
    <message>
      <location filename="../../models/hub/client.py" />
      <source>its answer cannot be understood: {kind}</source>
      <translation>seine Antwort ist nicht zu verstehen: {kind}</translation>
    </message>
    <message>
      <location filename="../../models/hub/errors.py" />
      <source>{address} cannot be reached ({reason}). Check the network connection and, if you use one, the proxy, then try again.</source>
      <translation>{address} ist nicht erreichbar („{reason}“). Prüfe die Netzverbindung und gegebenenfalls den Proxy, und versuche es noch einmal.</translation>
    </message>
    <message>
      <location filename="../../models/hub/errors.py" />
      <source>{address} did not answer within {seconds:g} seconds. The network or the Hub is slow: try again later.</source>
      <translation>{address} hat nicht binnen {seconds:g} Sekunden geantwortet. Das Netz oder der Hub ist langsam: Versuche es später noch einmal.</translation>
    </message>
    <message>
      <location filename="../../models/hub/errors.py" />
      <source>The Hub takes no more requests from here for now. Try again in {wait}, or log in: it then allows more.</source>
      <translation>Der Hub nimmt von hier vorerst keine Anfragen mehr. Versuche es in {wait} noch einmal, oder melde dich an: Dann erlaubt er mehr.</translation>
    </message>
    <message>
      <location filename="../../models/hub/errors.py" />
      <source>The Hub has a problem ({what}). Try again in a while.</source>
      <translation>Der Hub hat ein Problem ({what}). Versuche es in einer Weile noch einmal.</translation>
    </message>
    <message>
      <location filename="../../models/hub/errors.py" />
      <source>There is no repository {repo_id}, or it is private. Check the name; if it is private, {how}.</source>
      <translation>Es gibt kein Repository {repo_id}, oder es ist privat. Prüfe den Namen; ist es privat, {how}.</translation>
    </message>
    <message>
      <location filename="../../models/hub/errors.py" />
      <source>{repo_id} has no version {revision} (any more). Try again to get the current one.</source>
      <translation>{repo_id} hat keine Version {revision} (mehr). Versuche es noch einmal, um die aktuelle zu bekommen.</translation>
    </message>
    <message>
      <location filename="../../models/hub/errors.py" />
      <source>{repo_id} has no file {name} (any more).</source>
      <translation>{repo_id} hat keine Datei {name} (mehr).</translation>
    </message>
    <message>
      <location filename="../../models/hub/errors.py" />
      <source>{repo_id} is gated: its makers ask you to accept their conditions first. Do so at {address}/{repo_id}, then log in here.</source>
      <translation>{repo_id} verlangt Zustimmung: Die Macher bitten dich, zuerst ihre Bedingungen anzunehmen. Tu das unter {address}/{repo_id}, und melde dich dann hier an.</translation>
    </message>
    <message>
      <location filename="../../models/hub/errors.py" />
      <source>{repo_id} is gated and your account has no access yet. Accept its conditions at {address}/{repo_id} (some makers answer after days), then try again.</source>
      <translation>{repo_id} verlangt Zustimmung, und dein Konto hat noch keinen Zugang. Nimm die Bedingungen unter {address}/{repo_id} an (manche Macher antworten nach Tagen), und versuche es noch einmal.</translation>
    </message>
    <message>
      <location filename="../../models/hub/errors.py" />
      <source>HF_HUB_OFFLINE is set, so the Hub is not asked. Unset it to search and download.</source>
      <translation>HF_HUB_OFFLINE ist gesetzt, der Hub wird also nicht gefragt. Ohne das lässt sich suchen und herunterladen.</translation>
    </message>
    <message>
      <location filename="../../models/hub/errors.py" />
      <source>a few minutes</source>
      <translation>ein paar Minuten</translation>
    </message>
    <message>
      <location filename="../../models/hub/errors.py" />
      <source>{n_seconds} s</source>
      <translation>{n_seconds} s</translation>
    </message>
    <message>
      <location filename="../../models/hub/errors.py" />
      <source>your token must be allowed to read it</source>
      <translation>muss dein Token es lesen dürfen</translation>
    </message>
    <message>
      <location filename="../../models/hub/errors.py" />
      <source>log in first</source>
      <translation>melde dich zuerst an</translation>
    </message>
    <message>
      <location filename="../../models/hub/errors.py" />
      <source>The Hub does not accept the access token: it is wrong or has expired. Make a new one in your account's settings on the Hub and log in with it, or correct HF_TOKEN.</source>
      <translation>Der Hub nimmt das Zugangs-Token nicht an: Es ist falsch oder abgelaufen. Erzeuge in den Einstellungen deines Kontos auf dem Hub ein neues und melde dich damit an, oder berichtige HF_TOKEN.</translation>
    </message>
    <message>
      <location filename="../../models/hub/remote_source.py" />
      <source>The header of {name} is longer than {most} MiB, so it is not read over the network.</source>
      <translation>Der Kopf von {name} ist länger als {most} MiB und wird nicht über das Netz gelesen.</translation>
    </message>
    <message>
      <location filename="../../models/hub/remote_source.py" />
      <source>it sent {n_content:,} bytes of {name} instead of {n_wanted:,}</source>
      <translation>er hat {n_content:,} Byte von {name} statt {n_wanted:,} gesendet</translation>
    </message>
    <message>
      <location filename="../../models/hub/remote_source.py" />
      <source>it does not send parts of files</source>
      <translation>er sendet keine Teile von Dateien</translation>
    </message>
    <message>
      <location filename="../../models/hub/session.py" />
      <source>The proxy cannot be used ({reason}). Correct it in the settings of the Hub, or in the variables HTTPS_PROXY, HTTP_PROXY and ALL_PROXY. It looks like http://example.org:3128 or socks5://127.0.0.1:1080.</source>
      <translation>Der Proxy kann nicht verwendet werden ({reason}). Berichtige ihn in den Einstellungen des Hubs oder in den Variablen HTTPS_PROXY, HTTP_PROXY und ALL_PROXY. Er sieht so aus: http://example.org:3128 oder socks5://127.0.0.1:1080.</translation>
    </message>
    <message>
      <location filename="../../models/hub/settings.py" />
      <source>The Hub's {what} {shown} is no web address. It looks like https://example.org:8080.</source>
      <translation>Beim Hub ist {what} {shown} keine Webadresse. Sie sieht aus wie https://example.org:8080.</translation>
    </message>
    <message>
      <location filename="../../models/hub/settings.py" />
      <source>This system has no keyring that could keep the token (on Linux: GNOME Keyring or KWallet in a desktop session). Set the environment variable HF_TOKEN instead.</source>
      <translation>Dieses System hat keinen Schlüsselbund für das Token (unter Linux: GNOME-Schlüsselbund oder KWallet in einer Sitzung). Setze stattdessen die Umgebungsvariable HF_TOKEN.</translation>
    </message>
    <message>
      <location filename="../../models/hub/settings.py" />
      <source>The Hub's settings in {file} cannot be read. Correct or delete the file.</source>
      <translation>Die Einstellungen des Hubs in {file} können nicht gelesen werden. Berichtige oder lösche die Datei.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/head_offers.py" />
      <source>No EAGLE-3 head was looked for. {no_head}</source>
      <translation>Nach einem EAGLE-3-Kopf wurde nicht gesucht. {no_head}</translation>
    </message>
    <message>
      <location filename="../../models/pairing/heads.py" />
      <source>It is a drafting head of the kind {architecture}, which Slipstream does not run. EAGLE-3 and DFlash heads and small models of the same vocabulary can draft.</source>
      <translation>Es ist ein Entwurfskopf der Art {architecture}, die Slipstream nicht ausführt. Entwürfe machen EAGLE-3- und DFlash-Köpfe und kleine Modelle mit demselben Vokabular.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/heads.py" />
      <source>llama.cpp exports no hidden states of layers for the architecture {architecture}.</source>
      <translation>llama.cpp gibt für die Architektur {architecture} keine inneren Zustände der Schichten heraus.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/heads.py" />
      <source>It is a head of the kind {variant}. Slipstream runs DFlash heads of the first kind.</source>
      <translation>Es ist ein Kopf der Art {variant}. Slipstream führt DFlash-Köpfe der ersten Art aus.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/heads.py" />
      <source>The file carries no prediction heads.</source>
      <translation>Die Datei enthält keine Vorhersageköpfe.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/heads.py" />
      <source>llama.cpp has no graph for the prediction heads of the architecture {architecture}.</source>
      <translation>llama.cpp kann die Vorhersageköpfe der Architektur {architecture} nicht rechnen.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/heads.py" />
      <source>The file carries {n_mtp_layers} prediction heads, and llama.cpp runs one for this architecture.</source>
      <translation>Die Datei enthält {n_mtp_layers} Vorhersageköpfe, und llama.cpp rechnet für diese Architektur einen.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/heads.py" />
      <source>It was made for a model of width {made_for}, and this one's is {n_embd}.</source>
      <translation>Es wurde für ein Modell der Breite {made_for} gemacht, und dieses hat {n_embd}.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/heads.py" />
      <source>It reads layer {layer}, and the model has layers 0 to {last}.</source>
      <translation>Es liest Schicht {layer}, und das Modell hat die Schichten 0 bis {last}.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/heads.py" />
      <source>Its blocks have {n_rows} rows, so it drafts nothing.</source>
      <translation>Seine Blöcke haben {n_rows} Zeilen, es macht also keine Entwürfe.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/heads.py" />
      <source>It does not name a token that stands for those to be drafted (mask_token_id).</source>
      <translation>Es nennt kein Token, das für die zu ratenden steht (mask_token_id).</translation>
    </message>
    <message>
      <location filename="../../models/pairing/heads.py" />
      <source>It has no embeddings of its own and its width is {width}, while the model's is {n_embd}.</source>
      <translation>Es hat keine eigenen Einbettungen und die Breite {width}, während das Modell {n_embd} hat.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/heads.py" />
      <source>An EAGLE-3 head has one layer.</source>
      <translation>Ein EAGLE-3-Kopf hat eine Schicht.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/heads.py" />
      <source>Its keys and values differ in length.</source>
      <translation>Seine Schlüssel und Werte sind verschieden lang.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/heads.py" />
      <source>It has embeddings for {value:,} tokens and the model has {n_target:,}.</source>
      <translation>Es hat Einbettungen für {value:,} Token, und das Modell hat {n_target:,}.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/heads.py" />
      <source>It has no output of its own and has {n_tokens:,} tokens, while the model has {n_target:,}.</source>
      <translation>Es hat keine eigene Ausgabe und {n_tokens:,} Token, während das Modell {n_target:,} hat.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/heads.py" />
      <source>Its table of token ids (d2t) does not go with an output of its own.</source>
      <translation>Seine Tabelle der Token-Nummern (d2t) passt zu keiner eigenen Ausgabe.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/heads.py" />
      <source>Its table of token ids (d2t) names tokens that are not among its {n_tokens:,}.</source>
      <translation>Seine Tabelle der Token-Nummern (d2t) nennt Token, die nicht unter seinen {n_tokens:,} sind.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/offers.py" />
      <source>The Hub has no small sibling of this model under the name {words}.</source>
      <translation>Der Hub hat unter dem Namen {words} kein kleines Geschwister dieses Modells.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/offers.py" />
      <source>It has no whole file to download.</source>
      <translation>Es hat keine ganze Datei zum Herunterladen.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/offers.py" />
      <source>The model's name says nothing of its family, so the Hub was not searched.</source>
      <translation>Der Name des Modells sagt nichts über seine Familie, der Hub wurde also nicht durchsucht.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/offers.py" />
      <source>{name}: {reason}</source>
      <translation>{name}: {reason}</translation>
    </message>
    <message>
      <location filename="../../models/pairing/offers.py" />
      <source>{name}: It is larger than the memory that is left beside the model.</source>
      <translation>{name}: Es ist größer als der Speicher, der neben dem Modell bleibt.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/partner.py" />
      <source>It is larger than the model: {its:size} of weights, and the model has {mine:size}.</source>
      <translation>Es ist größer als das Modell: {its:size} Gewichte, und das Modell hat {mine:size}.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/partner.py" />
      <source>Its tokenizer is of another kind ({its} instead of {mine}).</source>
      <translation>Sein Tokenizer ist von anderer Art ({its} statt {mine}).</translation>
    </message>
    <message>
      <location filename="../../models/pairing/partner.py" />
      <source>It is too large to gain anything: it reads {its:size} for a token, and the model {model:size}.</source>
      <translation>Es ist zu groß, um etwas zu bringen: Es liest {its:size} je Token, und das Modell {model:size}.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/partner.py" />
      <source>It needs {memory:size} of memory beside the model, and {left:size} is left.</source>
      <translation>Es braucht neben dem Modell {memory:size} Speicher, und {left:size} ist übrig.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/store.py" />
      <source>What was measured and chosen of pairs</source>
      <translation>Die Datei mit Messungen und Wahl der Paare</translation>
    </message>
    <message>
      <location filename="../../models/pairing/vocabulary.py" />
      <source>{n:,} token ids mean another text: {shown}{rest}.</source>
      <translation>{n:,} Token-Nummern stehen für anderen Text: {shown}{rest}.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/vocabulary.py" />
      <source>Its tokenizer is of another kind ({kind} instead of {target_kind}).</source>
      <translation>Sein Tokenizer ist von anderer Art ({kind} statt {target_kind}).</translation>
    </message>
    <message>
      <location filename="../../models/pairing/vocabulary.py" />
      <source>It begins or ends texts with other special tokens.</source>
      <translation>Es beginnt oder beendet Texte mit anderen besonderen Token.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/vocabulary.py" />
      <source>It has {n_tokens:,} tokens and the model {target_n_tokens:,}.</source>
      <translation>Es hat {n_tokens:,} Token und das Modell {target_n_tokens:,}.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/vocabulary.py" />
      <source> and so on</source>
      <translation> und so weiter</translation>
    </message>
    <message>
      <location filename="../../models/pairing/vocabulary.py" />
      <source>1 token id means another text: {shown}.</source>
      <translation>1 Token-Nummer steht für anderen Text: {shown}.</translation>
    </message>
    <message>
      <location filename="../../models/pairing/vocabulary.py" />
      <source>{token} is {its} instead of {mine}</source>
      <translation>{token} ist {its} statt {mine}</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>{name} is {source_type} with {bits:.1f} bits per weight: as {type} it would be less than 5 % smaller and no better. {what_to_do}</source>
      <translation>{name} ist {source_type} mit {bits:.1f} Bit je Gewicht: Als {type} wäre es um weniger als 5 % kleiner und nicht besser. {what_to_do}</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>There is no type {name} to quantise to. Choose one of: {names}.</source>
      <translation>Es gibt keinen Typ {name} zum Quantisieren. Wähle einen von: {names}.</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>No noticeable loss.</source>
      <translation>Kein merklicher Verlust.</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>Hard to tell from the original.</source>
      <translation>Kaum vom Original zu unterscheiden.</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>Very near the original.</source>
      <translation>Sehr nah am Original.</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>Near the original; a little is lost.</source>
      <translation>Nah am Original; ein wenig geht verloren.</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>Good for most uses; some is lost.</source>
      <translation>Gut für das meiste; etwas geht verloren.</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>Noticeably worse: for what does not fit otherwise.</source>
      <translation>Merklich schlechter: für alles, was sonst nicht passt.</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>Much worse: a smaller model is often better.</source>
      <translation>Viel schlechter: Ein kleineres Modell ist oft besser.</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>{name} is a head that drafts for a larger model: it is small as it is. Quantise the model it belongs to.</source>
      <translation>{name} ist ein Kopf, der für ein größeres Modell Entwürfe macht: Er ist schon klein. Quantisiere das Modell, zu dem er gehört.</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>{name} cannot be quantised: {problem}</source>
      <translation>{name} kann nicht quantisiert werden: {problem}</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>{name} is quantised already ({quantisation}): to quantise it again loses more than to quantise the original once. Get its {type} from the maker, or quantise the F16 or BF16 file, or allow it.</source>
      <translation>{name} ist schon quantisiert ({quantisation}): Noch einmal verliert mehr als das Original einmal. Hole {type} vom Hersteller, quantisiere die Datei in F16 oder BF16, oder erlaube es.</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>There is a model called {stem} already: {target}. Remove it first, or give the result another name.</source>
      <translation>Es gibt schon ein Modell namens {stem}: {target}. Entferne es zuerst, oder gib dem Ergebnis einen anderen Namen.</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>Choose a smaller type: {smaller}.</source>
      <translation>Wähle einen kleineren Typ: {smaller}.</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>Use it as it is.</source>
      <translation>Verwende es, wie es ist.</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>{output} cannot be a model's name. Give one that has no slashes or special characters and does not begin with a point.</source>
      <translation>{output} kann kein Name eines Modells sein. Nimm einen ohne Schrägstriche und Sonderzeichen, der nicht mit einem Punkt beginnt.</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>{wanted} needs an importance matrix, measured while the original model reads texts, and would be poor without. Download it from a maker that has one, or choose one of: {names}.</source>
      <translation>{wanted} braucht eine Wichtigkeits-Matrix, die beim Lesen von Texten am Original gemessen wird, und wäre ohne sie schlecht. Lade es von einem Hersteller, der eine hat, oder wähle eines von: {names}.</translation>
    </message>
    <message>
      <location filename="../../models/quantise/plan.py" />
      <source>Cancelled. Nothing of it is left on the disk.</source>
      <translation>Abgebrochen. Auf der Platte bleibt nichts davon.</translation>
    </message>
    <message>
      <location filename="../../models/quantise/progress.py" />
      <source>The file is larger than usual: {rows}, so they got a larger one.</source>
      <translation>Die Datei ist größer als üblich: {rows}, sie bekamen also einen größeren.</translation>
    </message>
    <message>
      <location filename="../../models/quantise/progress.py" />
      <source>{n_fallback} of {n_tensors} tensors</source>
      <translation>{n_fallback} von {n_tensors} Tensoren</translation>
    </message>
    <message>
      <location filename="../../models/quantise/progress.py" />
      <source>this type</source>
      <translation>diesem Typ</translation>
    </message>
    <message>
      <location filename="../../models/recommend/fit_report.py" />
      <source>{total:size} of {free:size} free on {device}</source>
      <translation>{total:size} von {free:size} frei auf {device}</translation>
    </message>
    <message>
      <location filename="../../models/recommend/fit_report.py" />
      <source>It fits only with {n_ctx:,} tokens of context and a {kv_type} cache: it takes {taken}.</source>
      <translation>Es passt nur mit {n_ctx:,} Token Kontext und einem {kv_type}-Cache: Es braucht {taken}.</translation>
    </message>
    <message>
      <location filename="../../models/recommend/fit_report.py" />
      <source>It needs {total:size} on {device} even with a context of {n_ctx:,} tokens, and {free:size} is free. Choose a smaller quantisation or model.</source>
      <translation>Es braucht {total:size} auf {device}, selbst mit einem Kontext von {n_ctx:,} Token, und {free:size} ist frei. Wähle eine kleinere Quantisierung oder ein kleineres Modell.</translation>
    </message>
    <message>
      <location filename="../../models/recommend/fit_report.py" />
      <source>It does not fit with {n_ctx:,} tokens of context: it needs {total:size} on {device} even with a {kv_type} cache, and {free:size} is free. {n_fitting:,} tokens fit, with a {kv_fitting} cache.</source>
      <translation>Es passt nicht mit {n_ctx:,} Token Kontext: Es braucht {total:size} auf {device}, selbst mit einem {kv_type}-Cache, und {free:size} ist frei. {n_fitting:,} Token passen, mit einem {kv_fitting}-Cache.</translation>
    </message>
    <message>
      <location filename="../../models/recommend/fit_report.py" />
      <source>This model turns texts into vectors (/v1/embeddings) and cannot write.</source>
      <translation>Dieses Modell macht aus Texten Vektoren (/v1/embeddings) und kann nicht schreiben.</translation>
    </message>
    <message>
      <location filename="../../models/recommend/fit_report.py" />
      <source>The file has no layers, so there is nothing to run. Get a complete file of this model.</source>
      <translation>Die Datei hat keine Schichten, es gibt also nichts auszuführen. Hole eine vollständige Datei dieses Modells.</translation>
    </message>
    <message>
      <location filename="../../models/recommend/fit_report.py" />
      <source>A context of {n_ctx:,} tokens is not possible: choose between 1 and {most:,}.</source>
      <translation>Ein Kontext von {n_ctx:,} Token ist nicht möglich: Wähle zwischen 1 und {most:,}.</translation>
    </message>
    <message>
      <location filename="../../models/recommend/fit_report.py" />
      <source>It fits with {n_ctx:,} tokens of context: it takes {taken}.</source>
      <translation>Es passt mit {n_ctx:,} Token Kontext: Es braucht {taken}.</translation>
    </message>
    <message>
      <location filename="../../models/recommend/fit_report.py" />
      <source>It just fits with {n_ctx:,} tokens of context: it takes {taken}. Close other programs before loading it.</source>
      <translation>Es passt knapp mit {n_ctx:,} Token Kontext: Es braucht {taken}. Schließe andere Programme, bevor du es lädst.</translation>
    </message>
    <message>
      <location filename="../../models/recommend/fit_report.py" />
      <source>It does not fit with {n_ctx:,} tokens of context, nor with fewer: it needs {total:size} on {device} even with a {kv_type} cache, and {free:size} is free. Choose a smaller model.</source>
      <translation>Es passt nicht mit {n_ctx:,} Token Kontext, auch nicht mit weniger: Es braucht {total:size} auf {device}, selbst mit einem {kv_type}-Cache, und {free:size} ist frei. Wähle ein kleineres Modell.</translation>
    </message>
    <message>
      <location filename="../../models/recommend/fit_report.py" />
      <source>It was trained for {n_ctx:,} tokens of context, so it is judged with that instead of {asked:,}.</source>
      <translation>Trainiert ist es für einen Kontext von {n_ctx:,} Token, also wird es damit beurteilt statt mit {asked:,}.</translation>
    </message>
    <message>
      <location filename="../../models/recommend/fit_report.py" />
      <source>There is no room for {n_ctx:,} tokens of context: {n_fitting:,} fit.</source>
      <translation>Für {n_ctx:,} Token Kontext ist kein Platz: {n_fitting:,} passen.</translation>
    </message>
    <message>
      <location filename="../../models/recommend/fit_report.py" />
      <source>There is no room for its draft model, so it is loaded without.</source>
      <translation>Für sein Entwurfsmodell ist kein Platz, es wird also ohne geladen.</translation>
    </message>
    <message>
      <location filename="../../models/recommend/fit_report.py" />
      <source>Its prediction heads cannot draft here. {reason}</source>
      <translation>Seine Vorhersageköpfe können hier keine Entwürfe machen. {reason}</translation>
    </message>
    <message>
      <location filename="../../models/recommend/fit_report.py" />
      <source>Its {head} cannot draft here. {reason}</source>
      <translation>{head}: kann hier keine Entwürfe machen. {reason}</translation>
    </message>
    <message>
      <location filename="../../models/recommend/recommend.py" />
      <source>{empty:expected} here, {full:expected} after {n_ctx:,} tokens</source>
      <translation>hier {empty:expected}, {full:expected} nach {n_ctx:,} Token</translation>
    </message>
    <message>
      <location filename="../../models/recommend/recommend.py" />
      <source>fits well</source>
      <translation>gut passt</translation>
    </message>
    <message>
      <location filename="../../models/recommend/recommend.py" />
      <source>{quantisation}, the best quality that {how}; how fast it is here is not known yet.</source>
      <translation>{quantisation}, die beste Qualität, die {how}; wie schnell es hier ist, ist noch nicht bekannt.</translation>
    </message>
    <message>
      <location filename="../../models/recommend/recommend.py" />
      <source>how fast it is here is not known</source>
      <translation>wie schnell es hier ist, ist nicht bekannt</translation>
    </message>
    <message>
      <location filename="../../models/recommend/recommend.py" />
      <source>{empty:expected} here</source>
      <translation>{empty:expected} hier</translation>
    </message>
    <message>
      <location filename="../../models/recommend/recommend.py" />
      <source>There is no model here that can be used.</source>
      <translation>Hier ist kein Modell, das verwendet werden kann.</translation>
    </message>
    <message>
      <location filename="../../models/recommend/recommend.py" />
      <source>None fits this machine. The smallest: {sentence}</source>
      <translation>Keines passt auf diesen Rechner. Das kleinste: {sentence}</translation>
    </message>
    <message>
      <location filename="../../models/recommend/recommend.py" />
      <source>{quantisation}, the best quality that fits well and is quick enough: {pace}.</source>
      <translation>{quantisation}, die beste Qualität, die gut passt und schnell genug ist: {pace}.</translation>
    </message>
    <message>
      <location filename="../../models/recommend/recommend.py" />
      <source>is the fastest that fits</source>
      <translation>ist das schnellste, das passt</translation>
    </message>
    <message>
      <location filename="../../models/recommend/recommend.py" />
      <source>is the fastest that fits at all</source>
      <translation>ist das schnellste, das überhaupt passt</translation>
    </message>
    <message>
      <location filename="../../models/recommend/recommend.py" />
      <source>{quantisation}. None that fits well keeps {enough:g} tokens/s while its context fills; this one {why}: {pace}.</source>
      <translation>{quantisation}. Keines, das gut passt, hält {enough:g} Token/s, während sich der Kontext füllt; dieses {why}: {pace}.</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>Figures from public sources; no model of the list was downloaded or measured for it.</source>
      <translation>Zahlen aus öffentlichen Quellen; kein Modell der Liste wurde dafür heruntergeladen oder gemessen.</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>everyday</source>
      <translation>Alltag</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>an all-rounder for 8 GB of memory</source>
      <translation>ein Allrounder für 8 GB Speicher</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>many languages, everyday questions</source>
      <translation>viele Sprachen, alltägliche Fragen</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>clear answers in European languages, tools</source>
      <translation>klare Antworten in europäischen Sprachen, Werkzeuge</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>an all-rounder for 12 GB of memory</source>
      <translation>ein Allrounder für 12 GB Speicher</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>writing and many languages, 16 GB of memory</source>
      <translation>Texte und viele Sprachen, 16 GB Speicher</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>follows instructions closely, European languages</source>
      <translation>folgt Anweisungen genau, europäische Sprachen</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>writing and many languages, quick for its size</source>
      <translation>Texte und viele Sprachen, schnell für seine Größe</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>careful writing and many languages, 32 GB of memory</source>
      <translation>sorgfältige Texte und viele Sprachen, 32 GB Speicher</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>reasoning and tools</source>
      <translation>Nachdenken und Werkzeuge</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>sums and logic on a laptop</source>
      <translation>Rechnen und Logik auf dem Laptop</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>thinks at the speed of a small model</source>
      <translation>denkt nach, so schnell wie ein kleines Modell</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>reasoning and tools in 16 GB of memory</source>
      <translation>Nachdenken und Werkzeuge mit 16 GB Speicher</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>hard questions and code, slow without a GPU</source>
      <translation>schwere Fragen und Code, langsam ohne GPU</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>agents and code, quick for its size</source>
      <translation>Agenten und Code, schnell für seine Größe</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>reasoning and tools on a workstation</source>
      <translation>Nachdenken und Werkzeuge auf einer Workstation</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>code</source>
      <translation>Programmieren</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>code in an editor, 24 GB of memory</source>
      <translation>Code im Editor, 24 GB Speicher</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>large code bases and agents, 64 GB of memory</source>
      <translation>großer Code und Agenten, 64 GB Speicher</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>small machines</source>
      <translation>Kleine Rechner</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>short answers on the weakest machines</source>
      <translation>kurze Antworten auf den schwächsten Rechnern</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>summaries and extraction on any laptop</source>
      <translation>Zusammenfassen und Auslesen auf jedem Laptop</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>quick answers in many languages, thinks if asked</source>
      <translation>schnelle Antworten in vielen Sprachen, denkt auf Wunsch nach</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>six European languages, thinks if asked</source>
      <translation>sechs europäische Sprachen, denkt auf Wunsch nach</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>many languages with little work per token</source>
      <translation>viele Sprachen bei wenig Arbeit je Token</translation>
    </message>
    <message>
      <location filename="../../models/curated.json" />
      <source>tools and documents, long contexts cost little</source>
      <translation>Werkzeuge und Dokumente, lange Kontexte kosten wenig</translation>
    </message>
  </context>
</TS>
