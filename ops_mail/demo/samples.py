"""The mails of the demo, as senders all over the world write them. Everybody and everything in them is made up."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Shape(Enum):
    """How a mail is put together."""

    PLAIN = "text alone"
    HTML = "HTML alone"
    BOTH = "text and HTML"
    FILE = "text and an attachment"
    INVITATION = "text and a calendar invitation"
    PICTURE = "HTML with a picture inside"
    FORWARD = "a mail within a mail"
    BOUNCE = "a delivery report"
    RAW = "8-bit headers without any encoding, as some senders do"


@dataclass(frozen=True, slots=True)
class Sample:
    """One mail: who writes what, in which charset and shape. `filename` is that of the attachment."""

    name: str
    address: str
    subject: str
    text: str
    charset: str = "utf-8"
    shape: Shape = Shape.PLAIN
    filename: str = ""


SAMPLES: tuple[Sample, ...] = (
    Sample(
        "王芳", "wang.fang@example.cn", "关于十一月份的采购订单", "您好：\n\n订单已经确认，请查收。\n\n王芳", "gb2312"
    ),
    Sample(
        "Anna Schröder",
        "anna@example.de",
        "Grüße aus Köln: Rückfrage zur Überweisung",
        "Guten Tag,\n\nist die Zahlung schon eingegangen? Wir benötigen sie bis Freitag.\n\nViele Grüße\nAnna",
        "iso-8859-1",
    ),
    Sample(
        "佐藤 健",
        "sato@example.jp",
        "【至急】会議室の変更について",
        "お世話になっております。\n\n明日の会議は第二会議室に変更になりました。\n\n佐藤",
        "iso-2022-jp",
    ),
    Sample("Emoji 🎉", "party@example.com", "🎂 Happy birthday 🥳👩‍💻", "Cake at three! 🍰\n", shape=Shape.BOTH),
    Sample(
        "陳大文",
        "chan@example.tw",
        "報價單已更新,請於週五前回覆",
        "您好,\n\n附件是最新的報價單,謝謝。\n\n陳大文",
        "big5",
        Shape.FILE,
        "報價單.csv",
    ),
    Sample(
        "김민수",
        "kim@example.kr",
        "회의 일정 안내",
        "안녕하세요.\n\n다음 주 회의 일정을 보내드립니다.\n\n감사합니다.",
        "euc-kr",
    ),
    Sample(
        "Иван Петров",
        "petrov@example.ru",
        "Отчёт за ноябрь готов",
        "Добрый день!\n\nОтчёт готов, посмотрите, пожалуйста.\n\nИван",
        "koi8-r",
    ),
    Sample(
        "Cron Daemon", "root@backup.example.net", "Cron <root@backup> nightly: 214 files, 0 errors", "rsync: done\n"
    ),
    Sample(
        "Équipe Facturation",
        "factures@example.fr",
        "Votre facture n° 2041 (149,00 €)",
        "Bonjour,\n\nveuillez trouver ci-joint votre facture de 149,00 €.\n\nCordialement",
        "iso-8859-15",
        Shape.FILE,
        "Facture n° 2041.pdf",
    ),
    Sample(
        "Ольга Смирнова",
        "smirnova@example.com",
        "Приглашение на встречу",
        "Коллеги,\n\nприглашаю вас на встречу в четверг.",
        "windows-1251",
        Shape.INVITATION,
        "встреча.ics",
    ),
    Sample(
        "李雷",
        "li.lei@example.cn",
        "测试报告:第三季度性能对比",
        "各位好:\n\n报告见附件。\n",
        "gb18030",
        Shape.FILE,
        "测试报告.pdf",
    ),
    Sample("شركة النور", "info@example.ae", "تأكيد طلبكم رقم 452", "مرحباً،\n\nتم تأكيد طلبكم.\n", "windows-1256"),
    Sample("דנה לוי", "dana@example.il", "סיכום הפגישה", "שלום,\n\nמצורף סיכום הפגישה.\n", "windows-1255"),
    Sample(
        "Γιώργος Παπαδόπουλος", "giorgos@example.gr", "Η παραγγελία σας εστάλη", "Σας ευχαριστούμε!\n", "iso-8859-7"
    ),
    Sample("สมชาย ใจดี", "somchai@example.th", "ใบเสนอราคา", "เรียนทุกท่าน\n\nแนบใบเสนอราคามาด้วยแล้ว\n", "tis-620"),
    Sample(
        "Mail Delivery System",
        "MAILER-DAEMON@mx.example.org",
        "Undelivered Mail Returned to Sender",
        "This is the mail system. I'm sorry to have to inform you that your message could not be delivered.\n",
        shape=Shape.BOUNCE,
    ),
    Sample(
        "Newsletter",
        "news@shop.example",
        "−20 % auf alles · nur heute",
        "Nur heute: 20 % auf alles.\n",
        shape=Shape.HTML,
    ),
    Sample(
        "Nguyễn Thị Hoa",
        "hoa@example.vn",
        "Xác nhận lịch hẹn ngày 12",
        "Kính gửi quý khách,\n\nLịch hẹn đã xác nhận.\n",
    ),
    Sample("Łukasz Żółć", "lukasz@example.pl", "Zażółć gęślą jaźń", "Cześć,\n\nto tylko próba.\n", "iso-8859-2"),
    Sample(
        "田中 花子",
        "tanaka@example.jp",
        "請求書送付のご案内",
        "平素よりお世話になっております。\n請求書を添付いたします。\n",
        "shift_jis",
        Shape.FILE,
        "請求書.pdf",
    ),
    Sample("Ayşe Yılmaz", "ayse@example.tr", "Şubat ayı çalışma planı", "Merhaba,\n\nplan ektedir.\n", "iso-8859-9"),
    Sample(
        "प्रिया शर्मा", "priya@example.in", "बैठक का कार्यवृत्त", "नमस्ते,\n\nबैठक का कार्यवृत्त संलग्न है।\n", shape=Shape.PICTURE
    ),
    Sample("Олена Коваль", "olena@example.ua", "Запит щодо доставки", "Добрий день!\n\nКоли очікувати?\n", "koi8-u"),
    Sample(
        "José Peña",
        "jose@example.es",
        "Fwd: Presupuesto año próximo",
        "Te reenvío el mensaje de abajo.\n",
        "utf-8",
        Shape.FORWARD,
    ),
    Sample("客服中心", "service@example.cn", "您的包裹已签收", "您的包裹已由前台签收。\n", "gbk", Shape.RAW),
)
